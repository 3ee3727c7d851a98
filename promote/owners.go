package promote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Owned is whose approval CODEOWNERS asks for. It says what the file says: whether
// the forge waits for it is a matter of the branch's protection (and, on GitLab, of
// the licence), which the file does not tell. All texts are other people's.
type Owned struct {
	File     string   // where the rules stand; "" where the repository has none
	Demands  []Demand // each with all the paths that it is for
	Unowned  []string // paths for which nobody's approval is asked, sorted
	Warnings []string // what of the file could not be taken into account
}

// Demand is one approval that is asked for.
type Demand struct {
	Owners    []string // as written: @acme/sre, @mei, mei@acme.example; any of them will do
	Paths     []string // sorted
	Section   string   // GitLab's section; "" outside of one and elsewhere
	Approvals int      // how many of Owners; more than 1 on GitLab alone
	Optional  bool     // GitLab: they are named, and need not approve
}

const (
	ownersSize  = 3 << 20 // GitHub does not load a larger file; nobody writes one
	ownersRules = 10000   // of one file
	ownersLine  = 4096    // bytes of a line
	ownersNames = 50      // of a rule
	ownersTold  = 5       // warnings about lines
)

// ownersFiles are the places of CODEOWNERS; the first that is there counts. The
// sources are the forges' documents; Gitea's list is that of its services/issue,
// of which Forgejo knows one place more.
func ownersFiles(forge string) []string {
	switch forge {
	case scm.GitHub:
		return []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}
	case scm.GitLab:
		return []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"}
	case scm.Gitea:
		return []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS"}
	}
	return nil
}

// Owners tells whose approval CODEOWNERS asks for when paths (of files) change. The
// files are those of the branch that the forge reads it from: the base branch on
// GitHub and GitLab, the default branch on Gitea and Forgejo. Plain git has no
// owners: its answer is empty. An error is one of files itself; what a forge passes
// over is a warning.
func Owners(files fs.FS, forge string, paths []string) (Owned, error) {
	file, content, warnings, err := readOwners(files, ownersFiles(forge))
	if err != nil || file == "" {
		return Owned{Warnings: warnings}, err
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	o := &owning{Owned: Owned{File: file, Warnings: warnings}}
	if len(content) > ownersSize {
		o.Unowned = paths
		o.warn("is larger than %d MB, so nobody reads it", ownersSize>>20)
		return o.Owned, nil
	}
	switch forge {
	case scm.GitHub:
		o.github(content, paths)
	case scm.GitLab:
		o.gitlab(content, paths)
	default:
		o.gitea(content, paths)
	}
	o.finish(paths)
	return o.Owned, nil
}

// readOwners reads all places side by side, and gives the first that is there. A
// symlink is not followed.
func readOwners(files fs.FS, places []string) (file string, content []byte, warnings []string, err error) {
	contents, errs := make([][]byte, len(places)), make([]error, len(places))
	var group errgroup.Group
	for i, place := range places {
		group.Go(func() error {
			contents[i], errs[i] = fs.ReadFile(files, place)
			return nil
		})
	}
	_ = group.Wait() // each error is its own place's
	for i, place := range places {
		switch {
		case errors.Is(errs[i], fs.ErrNotExist):
		case errors.Is(errs[i], fs.ErrInvalid):
			warnings = append(warnings, place+" is no plain file and was passed over")
		case errs[i] != nil:
			return "", nil, warnings, fmt.Errorf("read %s: %w", place, errs[i])
		default:
			return place, contents[i], warnings, nil
		}
	}
	return "", nil, warnings, nil
}

// owning is an answer in the making.
type owning struct {
	Owned
	passed int // lines that were passed over and not told
}

func (o *owning) warn(format string, args ...any) {
	if len(o.Warnings) >= ownersTold {
		o.passed++
		return
	}
	o.Warnings = append(o.Warnings, o.File+" "+fmt.Sprintf(format, args...))
}

func (o *owning) passOver(line int, why string) {
	o.warn("line %d was passed over: %s", line, why)
}

// lines calls for each line with its number; no more than the bounds allow.
func (o *owning) lines(content []byte, each func(n int, line string)) {
	n, rules := 0, 0
	for raw := range bytes.Lines(bytes.TrimPrefix(content, []byte("\ufeff"))) {
		n++
		line := strings.TrimSpace(strings.ToValidUTF8(string(raw[:min(len(raw), ownersLine+1)]), "\ufffd"))
		switch {
		case line == "" || line[0] == '#':
			continue
		case len(raw) > ownersLine:
			o.passOver(n, fmt.Sprintf("it is longer than %d bytes", ownersLine))
			continue
		}
		if rules++; rules > ownersRules {
			o.warn("has more than %d rules: those from line %d on were passed over", ownersRules, n)
			return
		}
		each(n, line)
	}
}

// add notes that a path asks for an approval.
func (o *owning) add(d Demand, path string) {
	d.Owners = d.Owners[:min(len(d.Owners), ownersNames)]
	for i, known := range o.Demands {
		if known.Section == d.Section && known.Approvals == d.Approvals && known.Optional == d.Optional && slices.Equal(known.Owners, d.Owners) {
			o.Demands[i].Paths = append(o.Demands[i].Paths, path)
			return
		}
	}
	d.Paths = []string{path}
	o.Demands = append(o.Demands, d)
}

// finish tells which paths nobody need approve.
func (o *owning) finish(paths []string) {
	owned := map[string]bool{}
	for i, d := range o.Demands {
		slices.Sort(d.Paths)
		o.Demands[i].Paths = slices.Compact(d.Paths)
		for _, p := range d.Paths {
			owned[p] = owned[p] || !d.Optional
		}
	}
	for _, p := range paths {
		if !owned[p] {
			o.Unowned = append(o.Unowned, p)
		}
	}
	if o.passed > 0 {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%s: %d more lines like these", o.File, o.passed))
	}
}

// Evidence says in Markdown whose approval is asked for, and what could not be taken
// into account; "" where the repository has no CODEOWNERS. At most five demands and
// five owners of each are named.
func (o Owned) Evidence() string {
	var parts []string
	if o.File != "" {
		parts = append(parts, o.asks())
	}
	if len(o.Warnings) > 0 {
		parts = append(parts, "⚠️ "+some(o.Warnings))
	}
	return strings.Join(parts, "; ")
}

func (o Owned) asks() string {
	if len(o.Demands) == 0 {
		return Code(o.File) + " names nobody for these files"
	}
	var parts []string
	for _, d := range o.Demands[:min(len(o.Demands), 5)] {
		parts = append(parts, d.evidence(len(o.Demands) > 1 || len(o.Unowned) > 0))
	}
	if more := len(o.Demands) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if len(o.Unowned) > 0 {
		parts = append(parts, "nobody for "+some(o.Unowned))
	}
	return Code(o.File) + " asks for " + strings.Join(parts, "; ")
}

func (d Demand) evidence(withPaths bool) string {
	s := some(d.Owners)
	switch {
	case d.Approvals > 1:
		s = fmt.Sprintf("%d of %s", d.Approvals, s)
	case len(d.Owners) > 1:
		s = "one of " + s
	}
	if d.Section != "" {
		s += " (section " + Code(cut(d.Section, 100)) + ")"
	}
	if d.Optional {
		s += ", who need not approve"
	}
	if withPaths {
		s += " for " + some(d.Paths)
	}
	return s
}

// some names at most five, each made safe.
func some(names []string) string {
	var out []string
	for _, name := range names[:min(len(names), 5)] {
		out = append(out, Code(cut(name, 200)))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// Warning says that files of an environment have no owner, or "". A repository
// without CODEOWNERS has chosen to go without owners: there is nothing to warn of.
func (o Owned) Warning(environment string) string {
	if o.File == "" || len(o.Unowned) == 0 {
		return ""
	}
	return fmt.Sprintf("%s names nobody whose approval is asked for %s, which %s runs from: whoever may write can approve it", o.File, listed(o.Unowned), environment)
}
