package promote

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/hmarr/codeowners"

	"tagboat/scm"
)

func ownersAt(place, content string) fstest.MapFS {
	return fstest.MapFS{place: &fstest.MapFile{Data: []byte(content)}}
}

// asked is what an answer says of one path, in one line.
func asked(t *testing.T, forge, content, path string) string {
	t.Helper()
	o, err := Owners(ownersAt("CODEOWNERS", content), forge, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, d := range o.Demands {
		s := strings.Join(d.Owners, " ")
		if d.Section != "" {
			s = d.Section + ": " + s
		}
		if d.Approvals > 1 {
			s += fmt.Sprintf(" x%d", d.Approvals)
		}
		if d.Optional {
			s += "?"
		}
		parts = append(parts, s)
	}
	if len(o.Unowned) > 0 {
		parts = append(parts, "-")
	}
	return strings.Join(parts, "; ")
}

func TestOwnersGitHub(t *testing.T) {
	for name, test := range map[string]struct{ file, path, want string }{
		"all files":                      {"* @acme/all", "a/b/c.txt", "@acme/all"},
		"the last line counts":           {"* @acme/all\n/apps/ @mei", "apps/x.yaml", "@mei"},
		"the last without owners":        {"/apps/ @mei\n/apps/todo", "apps/todo/x.yaml", "-"},
		"several owners":                 {"* @mei @acme/sre mei@acme.example", "x", "@mei @acme/sre mei@acme.example"},
		"from the top":                   {"/docs/ @mei", "a/docs/x", "-"},
		"at any depth":                   {"docs/ @mei", "a/docs/x", "@mei"},
		"directory alone":                {"docs/ @mei", "docs", "-"},
		"right in it":                    {"docs/* @mei", "docs/x", "@mei"},
		"not below":                      {"docs/* @mei", "docs/a/x", "-"},
		"name of file or directory":      {"/apps @mei", "apps/a/x", "@mei"},
		"extension":                      {"*.yaml @mei", "a/b/x.yaml", "@mei"},
		"middle of any depth":            {"/apps/**/prod @mei", "apps/prod/x", "@mei"},
		"middle of more depth":           {"/apps/**/prod @mei", "apps/a/b/prod/x", "@mei"},
		"begins at any depth":            {"**/logs @mei", "a/logs/x", "@mei"},
		"question mark":                  {"/a? @mei", "ab", "@mei"},
		"case counts":                    {"/Apps/ @mei", "apps/x", "-"},
		"comment after":                  {"* @mei # and @li", "x", "@mei"},
		"escaped space":                  {`/a\ b @mei`, "a b", "@mei"},
		"other scripts":                  {"/應用/ @mei", "應用/x.yaml", "@mei"},
		"one of another script for ?":    {"/應? @mei", "應用", "@mei"},
		"punctuation":                    {"/a,b=c~d/ @mei", "a,b=c~d/x", "@mei"},
		"long top-level domain":          {"* mei@acme.example", "x", "mei@acme.example"},
		"top":                            {"/ @mei", "x", "-"},
		"any directory":                  {"**/ @mei", "a/x", "@mei"},
		"no directory":                   {"**/ @mei", "x", "-"},
		"any depth twice":                {"/**/**/x @mei", "x", "@mei"},
		"brackets are passed over":       {"* @li\n/a[bc] @mei", "ab", "@li"},
		"taking back is passed over":     {"* @li\n!/ab @mei", "ab", "@li"},
		"a bad owner takes the line out": {"* @li\n/ab mei", "ab", "@li"},
		"bytes that are no UTF-8":        {"* @li\n/\xff @mei", "x", "@li"},
		"line ends of Windows":           {"* @li\r\n/ab @mei\r\n", "ab", "@mei"},
	} {
		if got := asked(t, scm.GitHub, test.file, test.path); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestOwnersLikeTheLibrary compares with a library that many trust, on what it can
// read: it refuses a whole file for one bad line, and knows neither other scripts
// nor long top-level domains.
func TestOwnersLikeTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	elements := []string{"a", "b", "a*", "*b", "*", "**", "?", "a.yaml", "*.yaml"}
	names := []string{"a", "b", "ab", "a.yaml", "b.yaml"}
	draw := func(from []string, most int, before, after []string) string {
		var parts []string
		for range 1 + r.IntN(most) {
			parts = append(parts, from[r.IntN(len(from))])
		}
		return before[r.IntN(len(before))] + strings.Join(parts, "/") + after[r.IntN(len(after))]
	}
	matched := 0
	for range 2000 {
		pattern := draw(elements, 3, []string{"", "/"}, []string{"", "", "/"})
		if strings.Contains(pattern, "**/**") || strings.HasSuffix(pattern, "**/") {
			continue // there the library wants two slashes in a row
		}
		path := draw(names, 4, []string{""}, []string{""})
		rules, err := codeowners.ParseFile(strings.NewReader(pattern + " @mei"))
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		want, err := rules[0].Match(path)
		if err != nil {
			t.Fatal(err)
		}
		got := asked(t, scm.GitHub, pattern+" @mei", path) == "@mei"
		if got != want {
			t.Errorf("%s on %s: %t, the library says %t", pattern, path, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 250 {
		t.Errorf("only %d matches were compared", matched)
	}
}

func TestOwnersGitLab(t *testing.T) {
	for name, test := range map[string]struct{ file, path, want string }{
		"all files":                     {"* @all", "a/b", "@all"},
		"dot files":                     {"* @all", ".a/.b", "@all"},
		"group and role":                {"* @acme/sre/on-call @@maintainer mei@acme.example", "x", "@acme/sre/on-call @@maintainer mei@acme.example"},
		"no owner at all":               {"* mei", "x", "-"},
		"each section asks":             {"* @all\n[Docs]\ndocs/ @docs", "docs/x", "@all; Docs: @docs"},
		"the last of a section":         {"[A]\n* @a\n*.md @b", "x.md", "A: @b"},
		"default owners":                {"[A] @a @b\n*.md", "x.md", "A: @a @b"},
		"others instead":                {"[A] @a\n*.md @c", "x.md", "A: @c"},
		"a number":                      {"[A][2] @a\n*.md", "x.md", "A: @a x2"},
		"a number that is none":         {"[A][0] @a\n*.md", "x.md", "A: @a"},
		"optional":                      {"^[A] @a\n*.md", "x.md", "A: @a?; -"},
		"required where one heading is": {"^[A] @a\n*.md\n[a]\n*.go @b", "x.md", "A: @a"},
		"joined sections":               {"[A]\n*.md @a\n[B]\n* @b\n[a]\nx.md @c", "x.md", "A: @c; B: @b"},
		"taken out for good":            {"* @all\n!*.md\nx.md @b", "x.md", "-"},
		"taken out of one section":      {"* @all\n[A]\n* @a\n!x.md", "x.md", "@all"},
		"any depth":                     {"a/x.md @a", "b/a/x.md", "@a"},
		"from the top":                  {"/a/x.md @a", "b/a/x.md", "-"},
		"directory without a slash":     {"docs @a", "docs/x", "-"},
		"directory":                     {"docs/ @a", "b/docs/c/x", "@a"},
		"two stars at the end":          {"/docs/** @a", "docs/c/x", "-"},
		"two stars":                     {"/docs/**/x @a", "docs/b/c/x", "@a"},
		"two stars for none":            {"/docs/**/x @a", "docs/x", "@a"},
		"a class":                       {"/a[bc]d @a", "acd", "@a"},
		"a class that is not":           {"/a[!bc]d @a", "acd", "-"},
		"a class is no slash":           {"/a[!b]d @a", "a/d", "-"},
		"a class that ends never":       {"/a[b @a", "a[b", "@a"},
		"a class that matches nothing":  {"/a[z-a] @a", "ab", "-"},
		"braces are braces":             {"/{a,b} @a", "a", "-"},
		"escaped hash":                  {`\#x @a`, "#x", "@a"},
		"escaped space":                 {`/a\ b @a`, "a b", "@a"},
		"no comment after":              {"* @a # @b", "x", "@a @b"},
		"a heading that is none":        {"[A]\n*.md @a\n[B\n", "x.md", "A: @a"},
		"again takes the first place":   {"*.md @a\nx.md @b\n*.md @c", "x.md", "@b"},
	} {
		if got := asked(t, scm.GitLab, test.file, test.path); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestOwnersGitea(t *testing.T) {
	for name, test := range map[string]struct{ file, path, want string }{
		"an expression":             {`apps/.*\\.yaml @mei @acme/sre`, "apps/a/x.yaml", "@mei @acme/sre"},
		"of the whole path":         {`apps @mei`, "apps/x", "-"},
		"each rule that matches":    {".* @mei\napps/.* @li", "apps/x", "@mei; @li"},
		"what does not match":       {"!apps/.* @mei", "docs/x", "@mei"},
		"what does":                 {"!apps/.* @mei", "apps/x", "-"},
		"a slash at the front":      {"/apps/.* @mei", "apps/x", "@mei"},
		"without @":                 {".* mei", "x", "@mei"},
		"an alternative":            {"apps/a|docs @mei", "apps/ab", "@mei"}, // ^apps/a or docs$, as in Gitea
		"escaped space":             {`a\ b @mei`, "a b", "@mei"},
		"escaped hash":              {`a\#b @mei`, "a#b", "@mei"},
		"comment after":             {".* @mei # @li", "x", "@mei"},
		"a backslash of the regexp": {`a\\.b @mei`, "axb", "-"},
		"no owner":                  {".*", "x", "-"},
		"no expression":             {"( @mei", "x", "-"},
		"look-ahead is passed over": {"(?!a).* @mei", "x", "-"},
	} {
		if got := asked(t, scm.Gitea, test.file, test.path); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestOwnersPlaces(t *testing.T) {
	all := fstest.MapFS{}
	for _, place := range []string{"CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS", "docs/CODEOWNERS"} {
		all[place] = &fstest.MapFile{Data: []byte(".* @mei\n")}
	}
	for _, test := range []struct {
		forge string
		order []string
	}{
		{scm.GitHub, []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ""}},
		{scm.GitLab, []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS", ""}},
		{scm.Gitea, []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS", ""}},
		{scm.Git, []string{""}},
	} {
		files := fstest.MapFS{}
		for place, file := range all {
			files[place] = file
		}
		for _, want := range test.order {
			o, err := Owners(files, test.forge, []string{"x"})
			if err != nil || o.File != want {
				t.Errorf("%s: %q, %v, want %q", test.forge, o.File, err, want)
			}
			delete(files, want)
		}
	}
}

// oneFails tells an error for one file.
type oneFails struct {
	fs.FS
	name string
	err  error
}

func (f oneFails) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.FS.Open(name)
}

func TestOwnersOfABrokenForge(t *testing.T) {
	limited := errors.New("rate limited")
	if _, err := Owners(oneFails{ownersAt("CODEOWNERS", "* @mei"), ".github/CODEOWNERS", limited}, scm.GitHub, []string{"x"}); !errors.Is(err, limited) {
		t.Errorf("a place that cannot be read: %v", err)
	}
	if o, err := Owners(oneFails{ownersAt("CODEOWNERS", "* @mei"), "docs/CODEOWNERS", limited}, scm.GitHub, []string{"x"}); err != nil || len(o.Demands) != 1 {
		t.Errorf("a place behind the one that counts: %+v, %v", o, err)
	}
	o, err := Owners(oneFails{ownersAt("CODEOWNERS", "* @mei"), ".github/CODEOWNERS", fs.ErrInvalid}, scm.GitHub, []string{"x"})
	if err != nil || o.File != "CODEOWNERS" || !cmp.Equal(o.Warnings, []string{".github/CODEOWNERS is no plain file and was passed over"}) {
		t.Errorf("a symlink: %+v, %v", o, err)
	}
}

// TestOwnersBounds: what somebody has written never makes an answer, or its making,
// long.
func TestOwnersBounds(t *testing.T) {
	for name, content := range map[string]string{
		"a large file":     strings.Repeat("* @mei\n", ownersSize/7+1),
		"many rules":       strings.Repeat("/a/*/b @mei\n", ownersRules+1),
		"many bad lines":   strings.Repeat("![ @mei\n", 1000),
		"a long line":      "* " + strings.Repeat("@mei ", 100000),
		"many owners":      "* " + strings.Repeat("@mei ", 800),
		"a long owner":     "* @" + strings.Repeat("m", 3000),
		"a deep pattern":   strings.Repeat("**/", 1000) + "* @mei",
		"a hostile regexp": "(((a+)+)+)+! @mei",
	} {
		for _, forge := range []string{scm.GitHub, scm.GitLab, scm.Gitea} {
			o, err := Owners(ownersAt("CODEOWNERS", content), forge, []string{"a/" + strings.Repeat("a", 200)})
			if err != nil {
				t.Errorf("%s on %s: %v", name, forge, err)
			}
			if n := len(o.Evidence()) + len(strings.Join(o.Warnings, "")) + len(o.Warning("production")); n > 6000 {
				t.Errorf("%s on %s: an answer of %d bytes", name, forge, n)
			}
			for _, d := range o.Demands {
				if len(d.Owners) > ownersNames {
					t.Errorf("%s on %s: %d owners", name, forge, len(d.Owners))
				}
			}
		}
	}
}

func TestOwnersEvidence(t *testing.T) {
	for name, test := range map[string]struct{ forge, file, want, warning string }{
		"nobody":     {scm.GitHub, "/docs/ @mei", "`CODEOWNERS` names nobody for these files", "CODEOWNERS names nobody whose approval is asked for apps/a.yaml, apps/b.yaml, which production runs from: whoever may write can approve it"},
		"not all":    {scm.GitHub, "!x @mei\n* @acme/sre", "`CODEOWNERS` asks for `@acme/sre`; ⚠️ `CODEOWNERS line 1 was passed over: GitHub does not take a pattern back with '!'`", ""},
		"one":        {scm.GitHub, "* @acme/sre", "`CODEOWNERS` asks for `@acme/sre`", ""},
		"one of two": {scm.GitHub, "* @acme/sre @mei", "`CODEOWNERS` asks for one of `@acme/sre`, `@mei`", ""},
		"partly":     {scm.GitHub, "/apps/a.yaml @mei", "`CODEOWNERS` asks for `@mei` for `apps/a.yaml`; nobody for `apps/b.yaml`", "CODEOWNERS names nobody whose approval is asked for apps/b.yaml, which production runs from: whoever may write can approve it"},
		"sections": {scm.GitLab, "* @all\n[Ops `x`][2] @ops @mei\n*.yaml\n^[Docs] @docs\n*.yaml",
			"`CODEOWNERS` asks for `@all` for `apps/a.yaml`, `apps/b.yaml`; 2 of `@ops`, `@mei` (section `` Ops `x` ``) for `apps/a.yaml`, `apps/b.yaml`; `@docs` (section `Docs`), who need not approve for `apps/a.yaml`, `apps/b.yaml`", ""},
	} {
		o, err := Owners(ownersAt("CODEOWNERS", test.file), test.forge, []string{"apps/b.yaml", "apps/a.yaml", "apps/a.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{test.want, test.warning}, []string{o.Evidence(), o.Warning("production")}); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if o := (Owned{Warnings: []string{"not known"}}); o.Evidence() != "⚠️ `not known`" {
		t.Errorf("that could not be read: %q", o.Evidence())
	}
	if o := (Owned{}); o.Evidence() != "" || o.Warning("production") != "" {
		t.Errorf("without a file: %q, %q", o.Evidence(), o.Warning("production"))
	}
}
