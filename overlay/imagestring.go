package overlay

import "strings"

// imageString is an item of an Argo CD source's kustomize.images, which Argo CD
// gives to `kustomize edit set image`: [name=]repository[:tag][@digest]. Without
// "name=" the repository is the name (kustomize v5.8.2, commands/edit/set).
type imageString struct{ name, newName, tag, digest string }

func parseImageString(s string) imageString {
	name, rest, named := strings.Cut(s, "=")
	if !named {
		rest = s
	}
	repository, tag, digest := splitName(rest)
	if named {
		return imageString{name, repository, tag, digest}
	}
	return imageString{repository, "", tag, digest}
}

func (i imageString) String() string {
	var b strings.Builder
	b.WriteString(i.name)
	if i.newName != "" {
		b.WriteString("=" + i.newName)
	}
	if i.tag != "" {
		b.WriteString(":" + i.tag)
	}
	if i.digest != "" {
		b.WriteString("@" + i.digest)
	}
	return b.String()
}

// field is a part by the name of the entry's field that it stands for.
func (i imageString) field(name string) string {
	return map[string]string{fieldName: i.name, fieldNewName: i.newName, fieldNewTag: i.tag, fieldDigest: i.digest}[name]
}

// with is the string after writes of an entry's fields.
func (i imageString) with(writes []write) imageString {
	for _, w := range writes {
		switch w.field {
		case fieldName:
			i.name = w.value
		case fieldNewName:
			i.newName = w.value
		case fieldNewTag:
			i.tag = w.value
		case fieldDigest:
			i.digest = w.value
		}
	}
	return i
}

// quoteString writes an image string: plain where it would be without the "=",
// which means something to YAML only where it stands alone.
func quoteString(value string, quote, spare byte) string {
	if quote == 0 && plainString(strings.Replace(value, "=", "_", 1)) {
		return value
	}
	return quoteAs(value, quote, spare)
}
