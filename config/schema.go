package config

import _ "embed" // the schemas

// The schemas are made from the types and their comments by a test, which also
// holds them to what Load reads: go test ./config -update rewrites them.

//go:embed schema.json
var rootSchema []byte

//go:embed schema-included.json
var includedSchema []byte

// Schema is the JSON Schema (draft 2020-12) of tagboat.yaml.
func Schema() []byte { return rootSchema }

// IncludedSchema is the JSON Schema of the files that include names.
func IncludedSchema() []byte { return includedSchema }
