package overlay

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"tagboat/image"
)

// TestEditRefuses holds that what cannot be edited safely is refused with the
// file, the line, the cause and the next step.
func TestEditRefuses(t *testing.T) {
	const entry = "images:\n- name: app\n  newTag: v1\n"
	for name, c := range map[string]struct {
		in   string
		set  func(*Set)
		line string   // ":N:" or "" where the file has none
		says []string // cause and next step
	}{
		"two documents":             {in: entry + "---\nresources: []\n", line: ":5:", says: []string{"second YAML document", "keep one"}},
		"an empty one first":        {in: "---\n---\n" + entry, line: ":3:", says: []string{"second YAML document", "keep one"}},
		"a comment as the first":    {in: "---\n# c\n---\n" + entry, line: ":4:", says: []string{"second YAML document"}},
		"a broken second":           {in: entry + "---\na: [\n", says: []string{"not YAML"}},
		"images twice":              {in: entry + "resources: []\n" + entry, line: ":5:", says: []string{"images stands already on line 1", "join them"}},
		"images twice, other case":  {in: entry + "Images: []\n", line: ":4:", says: []string{"Images stands already on line 1"}},
		"images twice, long s":      {in: entry + "image\u017f: []\n", line: ":4:", says: []string{"stands already on line 1"}},
		"another key twice":         {in: "resources: [a]\n" + entry + "resources: [b]\n", line: ":5:", says: []string{"resources stands already on line 1"}},
		"a name twice":              {in: entry + "- name: app\n  newTag: v3\n", line: ":4:", says: []string{"app stands already on line 2", "keep one"}},
		"a field twice":             {in: "images:\n- name: app\n  newTag: v1\n  newTag: v3\n", line: ":4:", says: []string{"newTag stands twice", "keep one"}},
		"a field twice, other case": {in: "images:\n- name: app\n  newTag: v1\n  NewTag: v3\n", line: ":4:", says: []string{"NewTag stands twice"}},
		"imageTags":                 {in: "imageTags:\n- name: app\n  newTag: v1\n", line: ":1:", says: []string{"imageTags", "rename it to images"}},
		"an anchored tag, used again": {in: "images:\n- name: app\n  newTag: &v v1\n- name: web\n  newTag: *v\n", line: ":3:",
			says: []string{"&v", "line 5", "in both places"}},
		"an anchored tag, used in a label": {in: "images:\n- name: app\n  newTag: &v v1\ncommonLabels:\n  version: *v\n", line: ":3:",
			says: []string{"&v", "line 5"}},
		"an alias as the tag":    {in: "commonLabels:\n  version: &v v1\nimages:\n- name: app\n  newTag: *v\n", line: ":5:", says: []string{"newTag is an alias"}},
		"a merge key":            {in: "x: &d {newTag: v1}\nimages:\n- <<: *d\n  name: app\n", line: ":3:", says: []string{"merge key", "write them out"}},
		"an anchored entry":      {in: "images:\n- &a\n  name: app\n  newTag: v1\nx:\n  <<: *a\n", says: []string{"&a", "line 6"}},
		"an alias as the entry":  {in: "x: &a {name: app, newTag: v1}\nimages:\n- *a\n", line: ":3:", says: []string{"an alias (*a)"}},
		"an alias as the list":   {in: "x: &a\n- name: app\nimages: *a\n", line: ":3:", says: []string{"images is an alias"}},
		"an anchored list":       {in: "images: &a\n- name: app\nx: *a\n", says: []string{"&a", "line 3"}},
		"a literal tag":          {in: "images:\n- name: app\n  newTag: |-\n    v1\n", line: ":3:", says: []string{"newTag is a block scalar", "on one line"}},
		"a folded tag":           {in: "images:\n- name: app\n  newTag: >\n    v1\n", line: ":3:", says: []string{"newTag is a block scalar"}},
		"a tag over two lines":   {in: "images:\n- name: app\n  newTag: v1\n    b\n", line: ":3:", says: []string{"newTag goes on over several lines"}},
		"a quoted one over two":  {in: "images:\n- name: app\n  newTag: \"v1\\\n    b\"\n", line: ":3:", says: []string{"newTag goes on over several lines"}},
		"a list as the tag":      {in: "images:\n- name: app\n  newTag: [v1]\n", line: ":3:", says: []string{"newTag is not a plain value"}},
		"a literal name":         {in: "images:\n- name: |-\n    app\n", line: ":2:", says: []string{"name is a block scalar"}},
		"@(X)":                   {in: "images:\n- name: app\n  newTag: @(TAG)\n", line: ":3:", says: []string{"placeholder @(TAG)", "promote the file that the template makes"}},
		"{{X}}":                  {in: "images:\n- name: app\n  newTag: {{ .Tag }}\n", line: ":3:", says: []string{"placeholder {{ .Tag }}", "write a value"}},
		"quoted {{X}}":           {in: "images:\n- name: app\n  newTag: \"{{ .Tag }}\"\n", line: ":3:", says: []string{"placeholder {{ .Tag }}"}},
		"${X}":                   {in: "images:\n- name: app\n  newTag: ${TAG}\n", line: ":3:", says: []string{"placeholder ${TAG}"}},
		"$(X)":                   {in: "images:\n- name: app\n  digest: $(DIGEST)\n", line: ":3:", says: []string{"placeholder $(DIGEST)"}},
		"{% if %}":               {in: "{% if x %}\n" + entry + "{% endif %}\n", line: ":1:", says: []string{"placeholder {% if x %}"}},
		"a tag in newName":       {in: "images:\n- name: app\n  newName: r.example:5000/app:v1\n", line: ":3:", says: []string{"newName r.example:5000/app:v1 carries a tag", "move it to newTag"}},
		"a digest in newName":    {in: "images:\n- name: app\n  newName: r.example/app@OLD\n", line: ":3:", says: []string{"carries a tag or digest"}},
		"both in newName":        {in: "images:\n- name: app\n  newName: r.example/app:v1@OLD\n", line: ":3:", says: []string{"carries a tag or digest"}},
		"a digest in name":       {in: "images:\n- name: app@OLD\n", set: named("app@" + oldDigest), line: ":2:", says: []string{"carries a digest", "without it"}},
		"newTag and digest join": {in: "images:\n- name: app\n  newTag: v1@OLD\n  digest: OLD\n", line: ":3:", says: []string{"beside digest", "keep one"}},
		"newTag with half a digest": {in: "images:\n- name: app\n  newTag: v1@sha256:abc\n", line: ":3:",
			says: []string{`"sha256:abc" is not a digest`}},
		"a pattern that matches everything": {in: "images:\n- name: .*\n", set: named(".*"), line: ":2:", says: []string{"regular expression", "literally"}},
		"a pattern that misses itself":      {in: "images:\n- name: c++app\n", set: named("c++app"), line: ":2:", says: []string{"regular expression"}},
		"a pattern that is none":            {in: "images:\n- name: '['\n", set: named("["), line: ":2:", says: []string{"and it is none"}},
		"an item that is no mapping":        {in: "images:\n- app:v1\n", line: ":2:", says: []string{"not a mapping"}},
		"a mapping as images":               {in: "images:\n  name: app\n", line: ":2:", says: []string{"images is not a list"}},
		"no YAML":                           {in: "images:\n- name: app\n newTag: v1\n", line: ":", says: []string{"not YAML", "correct it first"}},
		"a list at the top":                 {in: "- name: app\n", line: ":1:", says: []string{"not a mapping"}},
		"empty":                             {in: "", says: []string{"is empty"}},
		"comments alone":                    {in: "# nothing\n", says: []string{"is empty"}},
		"null":                              {in: "~\n", line: ":1:", says: []string{"not a mapping"}},
		"CR alone":                          {in: "# a\rb\n" + entry, line: ":1:", says: []string{"carriage return", "line feed"}},
		"CR as the only break":              {in: strings.ReplaceAll(entry, "\n", "\r"), line: ":1:", says: []string{"carriage return"}},
		"CR at the end":                     {in: entry + "# a\r", line: ":4:", says: []string{"carriage return"}},
		"NEL in a comment":                  {in: "# a\u0085b\n" + entry, line: ":1:", says: []string{"U+0085"}},
		"LS in a value":                     {in: entry + "namePrefix: \"a\u2028b\"\n", line: ":4:", says: []string{"U+2028"}},
		"PS in a value":                     {in: entry + "namePrefix: \"a\u2029b\"\n", line: ":4:", says: []string{"U+2029"}},
		"UTF-16, little-endian":             {in: "\xff\xfei\x00m\x00", says: []string{"UTF-16", "UTF-8"}},
		"UTF-16, big-endian":                {in: "\xfe\xff\x00i\x00m", says: []string{"UTF-16"}},
		"UTF-16 without a mark":             {in: "i\x00m\x00", line: ":1:", says: []string{"NUL"}},
		"binary junk":                       {in: entry + "\x7fELF\x00", line: ":4:", says: []string{"NUL"}},
		"no UTF-8":                          {in: entry + "# gr\xfc\xdfe\n", line: ":4:", says: []string{"not UTF-8"}},
		"a form feed":                       {in: "# a\fb\n" + entry, says: []string{"not YAML"}},
		"another YAML":                      {in: "%YAML 1.9\n---\n" + entry, says: []string{"not YAML"}},
		"too large":                         {in: entry + strings.Repeat("# filler\n", maxKustomization/9), says: []string{"bytes, more than"}},
		"removal over two lines":            {in: "images:\n- name: app\n  newTag:\n    v1\n  digest: OLD\n", set: digestOnly, line: ":3:", says: []string{"on the line below", "on one line"}},
		"removal of a comment in flow":      {in: "images: [{name: app, # c\n  newTag: v1, digest: OLD}]\n", set: digestOnly, line: ":2:", says: []string{"without the comment"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Edit(oneFile(c.in), []Set{setApp(c.set)})
			if !errors.Is(err, ErrUnsafe) {
				t.Fatalf("Edit: %v, %+v; want ErrUnsafe", err, e.Changes)
			}
			if len(e.Files)+len(e.Changes) > 0 {
				t.Errorf("refused, but %+v", e)
			}
			for _, want := range append(c.says, stagingFile+c.line) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q; want it to say %q", err, want)
				}
			}
		})
	}
}

func named(name string) func(*Set) { return func(s *Set) { s.Entry.Name = name } }

// TestEditIsAllOrNothing holds that one bad set stops the good ones.
func TestEditIsAllOrNothing(t *testing.T) {
	const other = "apps/todo/overlays/production"
	fsys := oneFile("images:\n- name: app\n  newTag: v1\n- name: web\n  newTag: |\n    w1\n")
	fsys[other+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte("images:\n- name: app\n  newTag: v1\n")}
	elsewhere := setApp(func(s *Set) { s.Entry.Dir, s.Entry.File = other, other+"/kustomization.yaml" })
	for name, sets := range map[string][]Set{
		"in one file":   {setApp(nil), setApp(named("web"))},
		"in two files":  {elsewhere, setApp(named("web"))},
		"name unknown":  {elsewhere, setApp(named("nope"))},
		"no digest":     {elsewhere, setApp(func(s *Set) { s.To.Digest = "" })},
		"no tag":        {elsewhere, setApp(func(s *Set) { s.To.Tag = "a b" })},
		"no repository": {elsewhere, setApp(func(s *Set) { s.Rename, s.To.Repository = true, "App" })},
		"no pin":        {elsewhere, setApp(func(s *Set) { s.Pin = "tag" })},
		"no name":       {elsewhere, setApp(named(""))},
		"no place":      {elsewhere, setApp(func(s *Set) { s.Entry.Dir, s.Entry.File = "", "" })},
		"two images":    {elsewhere, setApp(nil), setApp(func(s *Set) { s.To.Tag = "v3" })},
		"two pins":      {setApp(nil), setApp(digestOnly)},
		"another file":  {elsewhere, setApp(func(s *Set) { s.Entry.File = stagingDir + "/kustomization.yml" })},
		"outside":       {elsewhere, setApp(func(s *Set) { s.Entry.Dir, s.Entry.File = "../x", "" })},
	} {
		if e, err := Edit(fsys, sets); err == nil || len(e.Files)+len(e.Changes)+len(e.Warnings) > 0 {
			t.Errorf("%s: %v, %+v; want an error and nothing done", name, err, e)
		}
	}
	e, err := Edit(fsys, []Set{elsewhere, setApp(nil), setApp(nil)})
	if err != nil || len(e.Files) != 2 || len(e.Changes) != 2 || e.Files[0].Path != other+"/kustomization.yaml" {
		t.Errorf("two files: %v, %+v; want both, the same set given twice done once", err, e)
	}
}

// TestEditTellsOfBrokenNeighbours holds that a value of another entry which
// stops kustomize is told, and not touched.
func TestEditTellsOfBrokenNeighbours(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"a number":         {"images:\n- name: app\n  newTag: v1\n- name: web\n  newTag: 1.10\n", ":6: newTag 1.10 is no string to kustomize"},
		"a word":           {"images:\n- name: app\n  newTag: v1\n- name: web\n  newTag: on\n", ":6: newTag on is no string"},
		"a placeholder":    {"images:\n- name: app\n  newTag: v1\n- name: web\n  newTag: {{ X }}\n", ":6: newTag {{ X }} is no string"},
		"an unknown field": {"images:\n- name: app\n  newTag: v1\n  newDigest: x\n", `unknown field "newDigest"`},
		"a name twice":     {"images:\n- name: app\n  newTag: v1\n- name: web\n- name: web\n", ":6: the name web stands already on line 5"},
	} {
		t.Run(name, func(t *testing.T) {
			_, e := runEdit(t, c.in, setApp(nil))
			if len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], c.says) {
				t.Errorf("warnings %q; want one that says %q", e.Warnings, c.says)
			}
		})
	}
}

// TestEditNeverUnpins holds that a tag is not written without a digest.
func TestEditNeverUnpins(t *testing.T) {
	_, err := Edit(oneFile("images:\n- name: app\n  newTag: v1\n  digest: OLD\n"), []Set{
		setApp(func(s *Set) { s.To = image.Reference{Repository: "app", Tag: "v2"} })})
	if err == nil || !strings.Contains(err.Error(), "app") {
		t.Errorf("Edit of a tag alone: %v; want an error that names the entry", err)
	}
}
