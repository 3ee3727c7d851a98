package promote

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// ownBranches is how head branches of Tagboat's begin.
const ownBranches = "tagboat/"

// promotionsBack bounds how far back a build looks for the promotion before it.
const promotionsBack = 100

// ownBuild says why a request's images are nothing new, or "": in a repository that
// holds both source and overlays, a promotion's own merge starts a build. environments
// are those of ownMerge.
func (p *Promoter) ownBuild(ctx context.Context, q Request, repo scm.Repository, app string, environments []string) (string, error) {
	if len(q.Images) == 0 || q.Again || !strings.EqualFold(q.Job.Repository, repo.About().Name) {
		return "", nil
	}
	return p.ownMerge(ctx, repo, app, environments, q.Job.Revision)
}

// ownMerge says why a build's commit is nothing new, or "". In a repository that
// holds both source and overlays, merging a promotion starts a build, whose image
// has another digest though nothing of its source is new: promoted, it would be
// merged, built and promoted again without end.
//
// A commit is nothing new where Tagboat's newest promotion of the app before it was
// for an image of commit R, and all that the commit changes against R is what
// promotions have edited. So a build counts whose own source change was built by
// nobody else, say because CI has cancelled the run in between: R is then older.
//
// environments are those whose promotions tell what builds have pushed (the ones
// without from); none means any. repo is the repository whose CI this is, and
// revision the commit that its job is for. A commit or a start that the repository
// does not know is something new.
func (p *Promoter) ownMerge(ctx context.Context, repo scm.Repository, app string, environments []string, revision string) (string, error) {
	if revision == "" {
		return "", nil
	}
	last, err := newestPromotion(ctx, repo, app, environments, revision)
	if err != nil || last.Revision == "" {
		return "", err
	}
	changes, err := repo.Changes(ctx, last.Revision, revision)
	if err != nil {
		return "", fmt.Errorf("compare commit %s with %s: %w", short(revision), short(last.Revision), err)
	}
	edited, err := editedFiles(repo.Files(ctx, revision), changes.Commits, last)
	if err != nil {
		return "", err
	}
	if changes.MergeBase != last.Revision || slices.ContainsFunc(changes.Paths, func(p string) bool { return !edited[p] }) {
		return "", nil
	}
	return fmt.Sprintf("commit %s differs from %s, whose image was promoted before, only in what promotions changed: its image is built from the same source (promote it nevertheless with --again)", short(revision), short(last.Revision)), nil
}

// newestPromotion are the trailers of the newest promotion of an app that leads to
// a commit; zero where there is none, or where the commit that it names is not
// among those that lead there either.
func newestPromotion(ctx context.Context, repo scm.Repository, app string, environments []string, revision string) (record.Trailers, error) {
	is := func(t record.Trailers) bool {
		return t.App == app && t.Revision != "" && (environments == nil || slices.Contains(environments, t.Environment))
	}
	var last record.Trailers
	n := 0
	for commit, err := range repo.Log(ctx, revision, "") {
		if n++; n > promotionsBack || notThere(err) {
			break
		}
		if err != nil {
			return record.Trailers{}, fmt.Errorf("read what leads to commit %s: %w", short(revision), err)
		}
		if last.Revision != "" && commit.SHA == last.Revision {
			return last, nil
		}
		t, told := record.ParseTrailers(commit.Message)
		if n == 1 && !told {
			if t, err = squashed(ctx, repo, commit); err != nil {
				return record.Trailers{}, err
			}
		}
		if last.Revision == "" && is(t) {
			last = t
		}
	}
	return record.Trailers{}, nil
}

// squashed are the trailers of the pull request that a commit was made of, for a
// forge that makes the message of its title alone; zero where the forge knows none.
func squashed(ctx context.Context, repo scm.Repository, commit scm.Commit) (record.Trailers, error) {
	evidence, ok := repo.(scm.Evidence)
	if !ok || len(commit.Parents) > 1 {
		return record.Trailers{}, nil
	}
	pr, err := evidence.Merged(ctx, commit.SHA)
	if notThere(err) || err == nil && (pr.HeadCommit == "" || !strings.HasPrefix(pr.Head, ownBranches)) {
		return record.Trailers{}, nil
	}
	if err != nil {
		return record.Trailers{}, fmt.Errorf("look for the pull request of commit %s: %w", short(commit.SHA), err)
	}
	n := 0
	for c, err := range repo.Log(ctx, pr.HeadCommit, "") {
		if n++; n > walked || notThere(err) {
			break
		}
		if err != nil {
			return record.Trailers{}, err
		}
		t, ok := record.ParseTrailers(c.Message)
		if branch, err := record.Branch(t.Environment, t.Ring, t.App); ok && err == nil && branch == pr.Head {
			return t, nil
		}
	}
	return record.Trailers{}, nil
}

// editedFiles are the files that a promotion, and those among the commits, say they
// have edited. A trailer is only a text, and source code it cannot hide: files is a
// tree in which the file must be of the target, and have the entry.
func editedFiles(files fs.FS, commits []scm.Commit, last record.Trailers) (map[string]bool, error) {
	all := []record.Trailers{last}
	for _, commit := range commits {
		t, _ := record.ParseTrailers(commit.Message)
		all = append(all, t)
	}
	edited := map[string]bool{}
	for _, t := range all {
		for _, e := range t.Edits {
			is, err := hasEntry(files, t.Paths, e)
			if err != nil {
				return nil, err
			}
			edited[e.File] = edited[e.File] || is
		}
	}
	return edited, nil
}

func hasEntry(files fs.FS, dirs []string, e record.Edit) (bool, error) {
	i := slices.IndexFunc(dirs, func(dir string) bool { return overlay.Holds(dir, e.File) })
	if i < 0 {
		return false, nil
	}
	entries, err := overlay.Entries(files, dirs[i])
	if passing(err) {
		return false, err
	}
	return slices.ContainsFunc(entries, func(o overlay.Entry) bool { return o.File == e.File && o.Name == e.Entry }), nil
}
