package overlay

import (
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"tagboat/image"
)

// TestQuoting writes tags that some YAML reads as something else, and reads them
// back with both of the decoders that matter.
func TestQuoting(t *testing.T) {
	quoted := strings.Fields(`1.10 1 1e3 1E3 706798e8 0e12345 0123456 0x1F 0b11 0o17 1_000 20240101 12_ 1. 1e400 9_9.5
		2024-01-01 2024-1-1 true True TRUE false null Null NULL yes Yes YES no on On off OFF y Y n N`)
	plain := strings.Fields(`v1 1.2.3 190e7a 1.10-rc1 a1b2c3d 0x1G 0b12 0o18 1_a _1 NaN inf latest yess nope v1.0_2 2024-01-01-abc 1e 20240101-2`)
	for _, tag := range append(quoted, plain...) {
		wantQuoted := strings.Contains(" "+strings.Join(quoted, " ")+" ", " "+tag+" ")
		for _, in := range []string{
			"images:\n- name: app\n  newTag: v0\n", "images:\n- name: app\n  newTag: 'v0'\n", "images:\n- name: app\n  newTag: \"v0\"\n",
			"images:\n- name: app\n", "images: [{name: app, newTag: v0}]\n", "images: []\n", "images:\n- name: app\n  newTag: # c\n",
		} {
			got, _ := runEdit(t, in, setApp(func(s *Set) { s.To.Tag = tag; s.Entry.Line = strings.Count(in, "name") }))
			if read := readTags(t, got); read != [2]string{tag, tag} {
				t.Errorf("newTag %s in\n%sreads as %q", tag, got, read)
			}
			if strings.Contains(in, "newTag: v0") && strings.Contains(got, "newTag: "+tag) == wantQuoted {
				t.Errorf("newTag %s: quoted should be %t in\n%s", tag, wantQuoted, got)
			}
			if strings.Contains(in, "'v0'") && !strings.Contains(got, "newTag: '"+tag+"'") || strings.Contains(in, `"v0"`) && !strings.Contains(got, `newTag: "`+tag+`"`) {
				t.Errorf("newTag %s: the quotes changed in\n%s", tag, got)
			}
		}
	}
}

// readTags is the first newTag as kustomize (YAML 1.1) and kyaml (1.2) read it.
func readTags(t *testing.T, content string) [2]string {
	t.Helper()
	var k types.Kustomization
	if err := k.Unmarshal([]byte(content)); err != nil || len(k.Images) != 1 {
		t.Errorf("kustomize reads\n%s: %v", content, err)
		return [2]string{}
	}
	var generic struct{ Images []map[string]any }
	if err := yaml.Unmarshal([]byte(content), &generic); err != nil {
		t.Errorf("kyaml reads\n%s: %v", content, err)
	}
	text, _ := generic.Images[0]["newTag"].(string)
	return [2]string{k.Images[0].NewTag, text}
}

// TestQuotesOfTheFile holds which quotes a value gets that needs some.
func TestQuotesOfTheFile(t *testing.T) {
	for in, want := range map[string]string{
		"images:\n- name: app\n  newTag: v1\n":                                      `"1.10"`,
		"images:\n- name: web\n  newTag: '1'\n- name: app\n  newTag: v1\n":          `'1.10'`,
		"images:\n- name: web\n  newTag: \"1\"\n- name: app\n  newTag: v1\n":        `"1.10"`,
		"commonLabels:\n  a: 'b'\nimages:\n- name: app\n  newTag: v1\n":             `'1.10'`,
		"commonLabels:\n  a: 'b'\n  c: \"d\"\nimages:\n- name: app\n  newTag: v1\n": `"1.10"`,
		"images:\n- name: app\n  newTag: 1.9\n":                                     `"1.10"`,
		"images:\n- name: app\n  newTag: !!str 1.9\n":                               `"1.10"`,
	} {
		got, _ := runEdit(t, in, setApp(func(s *Set) { s.To.Tag = "1.10" }))
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

func TestQuoteAs(t *testing.T) {
	for _, c := range []struct {
		value        string
		quote, spare byte
		want         string
	}{
		{"v1", 0, '"', "v1"}, {"1", 0, '"', `"1"`}, {"1", 0, '\'', `'1'`}, {"v1", '"', '\'', `"v1"`},
		{"it's", '\'', '"', `'it''s'`}, {`a"b\`, '"', '"', `"a\"b\\"`}, {"<b>&", 0, '"', `"<b>&"`},
		{"sha256:" + strings.Repeat("0", 64), 0, '"', "sha256:" + strings.Repeat("0", 64)},
		{"localhost:5000/app", 0, '"', "localhost:5000/app"}, {"10:20", 0, '"', `"10:20"`}, {"app:", 0, '"', `"app:"`},
		{"a b", 0, '"', `"a b"`}, {"", 0, '"', `""`}, {"a#b", 0, '"', `"a#b"`}, {"*a", 0, '"', `"*a"`},
	} {
		if got := quoteAs(c.value, c.quote, c.spare); got != c.want {
			t.Errorf("quoteAs(%q, %q, %q) = %s, want %s", c.value, c.quote, c.spare, got, c.want)
		}
	}
	if err := image.CheckTag("1.10"); err != nil {
		t.Error(err)
	}
}
