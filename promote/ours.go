package promote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// head is what stands on the head branch.
type head struct {
	exists   bool
	trailers record.Trailers // zero where no commit of it has any
	files    fs.FS           // at the head
	fork     fs.FS           // at the merge base
	foreign  string          // whose commits, where it is not ours
}

// ours says whether nobody's work would be lost by moving the branch.
func (h *head) ours() bool { return h.foreign == "" }

// forkOr is the tree at the merge base, or files where there is no head.
func (h *head) forkOr(files fs.FS) fs.FS {
	if h.fork == nil {
		return files
	}
	return h.fork
}

// examine decides whether the head branch is ours: whether its net change against
// the merge base equals the edits in its trailers, whoever made the commits, so
// that merges of the base ("Update branch") count as ours.
func (r *run) examine(ctx context.Context, s *state) (*head, error) {
	h := &head{exists: s.head != nil}
	if !h.exists {
		return h, nil
	}
	h.files = s.tree
	h.fork = s.files
	if s.changes.MergeBase != s.base.Commit.SHA {
		h.fork = r.repo.Files(ctx, s.changes.MergeBase)
	}
	if len(s.changes.Commits) == 0 {
		return h, nil // all of it is in the base
	}
	if s.open() == nil && slices.ContainsFunc(s.prs, func(pr scm.PullRequest) bool {
		return pr.State == scm.Merged && pr.HeadCommit == s.head.Commit.SHA
	}) {
		return h, nil // a squash merge has taken all of it, whoever's it was
	}
	found := false
	for _, commit := range s.changes.Commits {
		if h.trailers, found = record.ParseTrailers(commit.Message); found {
			break
		}
	}
	if !found {
		h.foreign = authors(s.changes.Commits)
		return h, nil
	}
	if want := r.trailers(s.base.Branch, nil); !h.trailers.SameTarget(want) {
		return h, fmt.Errorf("%w: branch %s promotes %s, this run promotes %s: give one of them another name with --app or --to",
			ErrOtherTarget, s.head.Branch, h.trailers.Target(), want.Target())
	}
	same, err := sameChange(h, s.changes.Paths)
	if err != nil {
		return h, fmt.Errorf("compare branch %s with its trailers: %w", s.head.Branch, err)
	}
	if !same {
		h.foreign = authors(foreignCommits(s.changes.Commits))
	}
	return h, nil
}

// sameChange makes the edits of the trailers again on the merge base, and
// compares byte for byte with what the head changes.
func sameChange(h *head, paths []string) (bool, error) {
	sets, err := again(h.fork, h.trailers)
	if err != nil {
		return false, nil // what cannot be made again is not what Tagboat made
	}
	edited, err := overlay.Edit(h.fork, sets)
	if err != nil {
		return false, nil
	}
	if len(edited.Files) != len(paths) {
		return false, nil
	}
	for _, f := range edited.Files {
		if !slices.Contains(paths, f.Path) {
			return false, nil
		}
		got, err := fs.ReadFile(h.files, f.Path)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(got, f.After) {
			return false, nil
		}
	}
	return true, nil
}

// again turns a branch's trailers into sets on the entries of another tree.
func again(files fs.FS, t record.Trailers) ([]overlay.Set, error) {
	entries, err := entriesOf(files, t.Paths)
	if err != nil {
		return nil, err
	}
	sets := setsFor(entries, t.Paths, t.Edits)
	if len(sets) != len(t.Edits) {
		return nil, errors.New("an entry is gone")
	}
	return sets, nil
}

// setsFor gives the sets that make edits on entries; an edit whose entry is gone
// is left out, unless it adds it.
func setsFor(entries []overlay.Entry, dirs []string, edits []record.Edit) []overlay.Set {
	var sets []overlay.Set
	for _, e := range edits {
		set := overlay.Set{To: e.Image, Rename: e.Rename}
		if e.DigestOnly {
			set.Pin = overlay.PinDigest
		}
		found := false
		for _, entry := range entries {
			if entry.Name == e.Entry && entry.File == e.File {
				set.Entry, found = entry, true
				sets = append(sets, set)
			}
		}
		at := slices.IndexFunc(dirs, func(dir string) bool { return overlay.Holds(dir, e.File) })
		if found || !e.Add || at < 0 {
			continue
		}
		set.Entry = overlay.Entry{Dir: dirs[at], File: e.File, Name: e.Entry}
		if e.Image.Repository != e.Entry {
			set.Entry.NewName = e.Image.Repository
		}
		sets = append(sets, set)
	}
	return sets
}

// sameEntry says whether two sets are of one entry. The file of an entry that is
// to be added may not be known yet.
func sameEntry(a, b overlay.Entry) bool {
	return a.Name == b.Name && (a.File == b.File || a.Dir == b.Dir && (a.File == "" || b.File == ""))
}

func foreignCommits(commits []scm.Commit) []scm.Commit {
	var out []scm.Commit
	for _, c := range commits {
		if _, ok := record.ParseTrailers(c.Message); !ok && len(c.Parents) < 2 {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return commits
	}
	return out
}

// authors names whose commits they are: "mei (1a2b3c4), li (5d6e7f8)".
func authors(commits []scm.Commit) string {
	var names []string
	for _, c := range commits {
		names = append(names, fmt.Sprintf("%s (%s)", oneLine(c.Author), short(c.SHA)))
		if len(names) == 5 {
			break
		}
	}
	s := strings.Join(names, ", ")
	if more := len(commits) - len(names); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func short(sha string) string { return sha[:min(len(sha), 7)] }
