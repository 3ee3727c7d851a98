// Package tagboat_test holds what is true of the tree as a whole.
package tagboat_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "tagboat"

// everything marks a package that may import any other: it wires or tests.
const everything = "*"

// arrows says which of our packages each may import, "below" included. A new
// package is entered here first: where it belongs is a decision.
func arrows() map[string][]string {
	inventory := []string{"config", "overlay", "registry", "scm", "record", "image"}
	promote := append([]string{"inventory"}, inventory...)
	return map[string][]string{
		".":           {everything},
		"cmd/tagboat": {everything},
		"e2e":         {everything},
		"bench":       {everything},
		"chatops":     append([]string{"promote"}, promote...),
		"promote":     promote,
		"inventory":   inventory,
		"layout":      {"config", "overlay", "image"},
		"config":      {"image"},
		"registry":    {"image"},
		"overlay":     {"image"},
		"record":      {"image"},
		"scm":         {},
		"image":       {},
		"ci":          {},
	}
}

// stands are what tests stand on: whoever needs a forge or a registry in a test
// may import them there, and the fakes import one another.
func stands() []string { return []string{"registry/registrytest", "scm"} }

// isTest tells a file that only tests, the demo and e2e run: a test, or one of a
// fake's package.
func isTest(name string) bool {
	dir := path.Base(path.Dir(name))
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(dir, "test") || dir == "giteareal"
}

// owners says who alone may import a library: no type of it leaves the package.
func owners() map[string][]string {
	return map[string][]string{
		"github.com/google/go-containerregistry": {"registry"},
		"github.com/awslabs":                     {"registry"},
		"sigs.k8s.io/kustomize":                  {"overlay"},
		"github.com/google/go-github":            {"scm/github"},
		"github.com/xanzy/go-gitlab":             {"scm/gitlab"},
		"code.gitea.io/sdk/gitea":                {"scm/gitea"},
		"github.com/go-git":                      {"scm/plaingit", "scm/scmtest", "scm/internal", "scm/gitea/giteareal"},
		"github.com/urfave/cli":                  {"cmd/tagboat"},
	}
}

func TestArrows(t *testing.T) {
	files := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (entry.Name()[0] == '.' || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		files++
		checkFile(t, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("looked at %d files: is this the root of the module?", files)
	}
}

func checkFile(t *testing.T, name string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	from := path.Dir(name)
	for _, spec := range file.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: import %s: %v", name, spec.Path.Value, err)
			continue
		}
		if ours, ok := strings.CutPrefix(to, module+"/"); ok {
			if !mayImport(from, ours, isTest(name)) {
				t.Errorf("%s: %s may not import %s", name, from, ours)
			}
			continue
		}
		if users := usersOf(to); !slices.ContainsFunc(users, func(user string) bool { return within(from, user) }) {
			t.Errorf("%s: only %s may import %s", name, strings.Join(users, ", "), to)
		}
	}
}

// usersOf returns the folders that may import a library; "." is all.
func usersOf(library string) []string {
	for owned, users := range owners() {
		if within(library, owned) {
			return append(users, "e2e", "bench")
		}
	}
	return []string{"."}
}

// mayImport knows that what lies in a package's folder follows the package's
// row, and may import the package itself and what lies beside it there.
func mayImport(from, to string, test bool) bool {
	row, found := from, false
	for ; !found && row != "."; row = path.Dir(row) {
		if _, found = arrows()[row]; found {
			break
		}
	}
	allowed := arrows()[row]
	switch {
	case from == ".":
		return true
	case !found:
		return false // not in the table
	case slices.Contains(allowed, everything), slices.Contains(allowed, to):
		return true
	case within(to, row+"/internal"):
		return true
	case from != row && within(to, row) && !foreign(from, to):
		return true
	}
	stand := slices.ContainsFunc(stands(), func(stand string) bool { return within(to, stand) })
	return test && (within(to, from) || stand && (to == "scm/scmtest" || !foreign(from, to)))
}

// foreign is one forge's package in another's: what is common goes up.
func foreign(from, to string) bool {
	folder, _, _ := strings.Cut(strings.TrimPrefix(from, "scm/"), "/")
	return strings.HasPrefix(from, "scm/") && to != "scm" && !within(to, "scm/internal") && !within(to, "scm/"+folder)
}

// within tells whether a path is dir or below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

func TestMayImport(t *testing.T) {
	tests := []struct {
		from, to   string
		test, want bool
	}{
		{"cmd/tagboat", "scm/github", false, true},
		{"promote", "scm", false, true},
		{"promote", "scm/github", false, false},
		{"promote", "scm/scmtest", false, false},
		{"promote", "scm/scmtest", true, true},
		{"promote", "ci", false, false},
		{"overlay", "registry", false, false},
		{"image", "record", true, false},
		{"scm/gitea", "scm", false, true},
		{"scm/gitea", "scm/github", false, false},
		{"scm/gitea", "scm/github", true, false},
		{"scm/gitea", "scm/scmtest", true, true},
		{"scm/gitea", "scm/scmtest", false, false},
		{"scm/plaingit", "scm/internal/gitobj", false, true},
		{"scm/gitea/giteareal", "scm/gitea", false, true},
		{"scm", "scm/github", false, false},
		{"scm", "image", false, false},
		{"registry/registrytest", "registry", false, true},
		{"registry/registrytest", "image", false, true},
		{"registry", "registry/registrytest", false, false},
		{"newcomer", "image", false, false},
	}
	for _, tt := range tests {
		if got := mayImport(tt.from, tt.to, tt.test); got != tt.want {
			t.Errorf("%s imports %s (test: %t): got %t, want %t", tt.from, tt.to, tt.test, got, tt.want)
		}
	}
}

func TestUsersOf(t *testing.T) {
	tests := []struct {
		library string
		want    []string
	}{
		{"github.com/google/go-github/v60/github", []string{"scm/github", "e2e", "bench"}},
		{"github.com/google/go-cmp/cmp", []string{"."}},
		{"fmt", []string{"."}},
	}
	for _, tt := range tests {
		if got := usersOf(tt.library); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.library, got, tt.want)
		}
	}
}
