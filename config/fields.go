package config

import (
	"reflect"
	"strconv"
	"strings"
)

// field is a key of a struct as its tags say it.
type field struct {
	name     string
	index    []int
	required bool
	unique   bool
	minItems int
	bounded  bool // a number is 0 to maximum
	maximum  int
	enum     []string
}

// fieldsOf lists the keys of a struct, those of an inlined one among them.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("yaml")
		key, options, _ := strings.Cut(tag, ",")
		switch {
		case !f.IsExported(), key == "-":
		case options == "inline":
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		default:
			fields = append(fields, fieldOf(key, i, f.Tag.Get("jsonschema")))
		}
	}
	return fields
}

func fieldOf(key string, index int, tag string) field {
	f := field{name: key, index: []int{index}}
	for word := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "required":
			f.required = true
		case "uniqueItems":
			f.unique = true
		case "minItems":
			f.minItems, _ = strconv.Atoi(value) // our own tags
		case "maximum":
			f.bounded = true
			f.maximum, _ = strconv.Atoi(value)
		case "enum":
			f.enum = append(f.enum, value)
		}
	}
	return f
}
