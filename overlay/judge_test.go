package overlay

import (
	"errors"
	"strings"
	"testing"
)

// TestJudge holds that the judge refuses what a faulty splice could do, by each
// of its three means.
func TestJudge(t *testing.T) {
	const before = "resources:\n- a\nimages:\n- name: app\n  newTag: v1\n- name: web\n  newTag: w1\n"
	good := []write{{fieldNewTag, "v2"}, {fieldDigest, newDigest}}
	for name, c := range map[string]struct{ after, says string }{
		"as wanted":                {"resources:\n- a\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: web\n  newTag: w1\n", ""},
		"broken":                   {"images: [\n", "would break it"},
		"another entry":            {"resources:\n- a\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: web\n  newTag: w2\n", "another entry"},
		"another key":              {"resources:\n- b\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: web\n  newTag: w1\n", "change resources"},
		"a new key":                {"resources:\n- a\nnew: b\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: web\n  newTag: w1\n", "top-level key"},
		"the wrong entry":          {"resources:\n- a\nimages:\n- name: app\n  newTag: v1\n- name: web\n  newTag: v2\n  digest: NEW\n", "would not write"},
		"an entry lost":            {"resources:\n- a\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n", "2"},
		"a field lost":             {"resources:\n- a\nimages:\n- newTag: v2\n  digest: NEW\n- name: web\n  newTag: w1\n", "lose a field"},
		"the name changed":         {"resources:\n- a\nimages:\n- name: app2\n  newTag: v2\n  digest: NEW\n- name: web\n  newTag: w1\n", "another field"},
		"a value commented out":    {"resources:\n- a\nimages:\n- name: app\n  newTag: v2 #\n  # digest: NEW\n- name: web\n  newTag: w1\n", "would not write digest"},
		"a number":                 {"resources:\n- a\nimages:\n- name: app\n  newTag: 2\n  digest: NEW\n- name: web\n  newTag: w1\n", "would not write newtag"},
		"a key twice":              {"resources:\n- a\nimages:\n- name: app\n  newTag: v2\n  digest: OLD\n  digest: NEW\n- name: web\n  newTag: w1\n", "lines"},
		"the whole file once more": {"resources:\n- a\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: web\n  newTag: w1\n# 1\n# 2\n# 3\n", "changes 5 lines, more than 2"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := parse(stagingFile, []byte(before))
			if err != nil {
				t.Fatal(err)
			}
			start := strings.Index(before, "v1")
			p := plan{set: setApp(nil), index: 0, writes: good, cuts: []cut{{start, start + 2, "v2"}}}
			l := []*listEdit{{before: doc, plans: []plan{p}}}
			_, _, err = judge(l, []byte(expand(c.after)))
			if (err == nil) != (c.says == "") || err != nil && !errors.Is(err, ErrUnsafe) {
				t.Fatalf("judge: %v; want ErrUnsafe for all but the wanted", err)
			}
			after, parseErr := parse(stagingFile, []byte(expand(c.after)))
			if parseErr != nil || err == nil {
				return
			}
			// Each means by itself: the first to refuse hides the others.
			_, byTypes := sameTypes(doc, after, []plan{p})
			all := errors.Join(fewLines(l, after.raw), sameNodes(l, []*document{after}), byTypes)
			if !strings.Contains(all.Error(), c.says) {
				t.Errorf("judge: %v; want it to say %q", all, c.says)
			}
		})
	}
}

// TestJudgeHoldsCutsToTheirEntry holds that no cut lies outside its entry's lines.
func TestJudgeHoldsCutsToTheirEntry(t *testing.T) {
	raw := []byte("images:\n- name: app\n  newTag: v1\n# end\n")
	doc, err := parse(stagingFile, raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, len(raw)} {
		err := fewLines([]*listEdit{{before: doc, plans: []plan{{index: 0, cuts: []cut{{at, at, ""}}}}}}, doc.raw)
		if err == nil {
			t.Errorf("a cut at %d passes", at)
		}
	}
}

// TestJudgeByKustomize holds that a value which only YAML 1.1 types is caught.
func TestJudgeByKustomize(t *testing.T) {
	before, err := parse(stagingFile, []byte("images:\n- name: app\n  newTag: v1\n"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := parse(stagingFile, []byte("images:\n- name: app\n  newTag: on\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := []plan{{index: 0, writes: []write{{fieldNewTag, "on"}}}}
	if err := sameNodes([]*listEdit{{before: before, plans: p}}, []*document{after}); err != nil {
		t.Errorf("kyaml reads on as text, but: %v", err)
	}
	if _, err := sameTypes(before, after, p); err == nil || !strings.Contains(err.Error(), "no longer read") {
		t.Errorf("kustomize reads on as a boolean, but: %v", err)
	}
}

func TestSplice(t *testing.T) {
	got, err := splice([]byte("abcdef"), []cut{{4, 6, "Z"}, {1, 2, "X"}, {3, 3, "1"}, {3, 3, "2"}})
	if err != nil || string(got) != "aXc12dZ" {
		t.Errorf("splice: %q, %v", got, err)
	}
	for _, cuts := range [][]cut{{{0, 3, ""}, {2, 4, ""}}, {{0, 9, ""}}, {{3, 2, ""}}} {
		if got, err := splice([]byte("abcdef"), cuts); err == nil {
			t.Errorf("splice %v: %q, no error", cuts, got)
		}
	}
}
