package overlay

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Plain scalars that every YAML reads as a string: no character with a meaning
// (§7.3.3), and not what YAML 1.1 or 1.2 types otherwise. kustomize resolves by
// 1.1, kyaml by 1.2, other tools by either.
var (
	plainCharacters = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_./:@-]*[A-Za-z0-9_./@-])?$`)
	numberLike      = regexp.MustCompile(`^([0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?|0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)
	dateLike        = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt].*)?$`)
	wordLike        = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// plainString says whether a value can be written without quotes.
func plainString(value string) bool {
	return plainCharacters.MatchString(value) && !numberLike.MatchString(value) &&
		!dateLike.MatchString(value) && !wordLike.MatchString(value)
}

// quoteAs writes a value in the given quotes; plain (0) only where it stays a
// string, else in the spare quotes.
func quoteAs(value string, quote, spare byte) string {
	if quote == 0 && plainString(value) {
		return value
	}
	if quote == 0 {
		quote = spare
	}
	if quote == '\'' {
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	// A JSON string is a YAML double-quoted one (YAML 1.2 §1.3).
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
