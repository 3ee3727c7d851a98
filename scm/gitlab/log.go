package gitlab

import (
	"context"
	"fmt"
	"iter"
	"slices"

	gl "github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// logPage is how many commits one call of Log brings.
const logPage = 50

// Log yields the commits that lead to a commit, newest first. GitLab before 17.x
// follows a renamed file into its old name (app/models/repository.rb, follow),
// and has no parameter against it.
func (r *Repository) Log(ctx context.Context, sha, path string) iter.Seq2[scm.Commit, error] {
	return func(yield func(scm.Commit, error) bool) {
		opt := &gl.ListCommitsOptions{ListOptions: gl.ListOptions{PerPage: logPage, Page: 1}, RefName: ref(sha)}
		if path != "" {
			opt.Path = ref(path)
		}
		for opt.Page != 0 {
			page, resp, err := r.api.Commits.ListCommits(r.project, opt, gl.WithContext(ctx))
			if e := r.explain(resp, err); e != nil {
				yield(scm.Commit{}, r.fail(fmt.Sprintf("read the log of %s", short(sha)), e))
				return
			}
			for _, c := range page {
				if !yield(commit(c), nil) {
					return
				}
			}
			opt.Page = resp.NextPage
		}
	}
}

// Changes compares head with its merge base with base, in one round. A comparison
// that GitLab cut short is an error, never a part of the truth.
func (r *Repository) Changes(ctx context.Context, base, head string) (scm.Changes, error) {
	what := fmt.Sprintf("compare %s with %s", short(head), short(base))
	var compared *gl.Compare
	var fork *gl.Commit

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		c, resp, err := r.api.Repositories.Compare(r.project, &gl.CompareOptions{From: ref(base), To: ref(head), Straight: ref(false)}, gl.WithContext(gctx))
		if e := r.explain(resp, err); e != nil {
			return r.fail(what, e)
		}
		compared = c
		return nil
	})
	g.Go(func() error {
		c, resp, err := r.api.Repositories.MergeBase(r.project, &gl.MergeBaseOptions{Ref: &[]string{base, head}}, gl.WithContext(gctx))
		if e := r.explain(resp, err); e != nil {
			return r.fail(what, e)
		}
		fork = c
		return nil
	})
	if err := g.Wait(); err != nil {
		return scm.Changes{}, err
	}
	if compared.CompareTimeout {
		return scm.Changes{}, r.fail(what, &refusal{kind: scm.ErrUnsupported,
			text: "the difference is larger than GitLab shows, so it cannot be judged", hint: "compare the two by hand"})
	}
	return scm.Changes{MergeBase: fork.ID, Paths: paths(compared.Diffs), Commits: newestFirst(compared.Commits)}, nil
}

// Compare makes two comparisons at once: GitLab tells of one only what its end has
// and its start has not, with all commits in one answer.
func (r *Repository) Compare(ctx context.Context, base, head string) (scm.Comparison, error) {
	var out scm.Comparison
	g, gctx := errgroup.WithContext(ctx)
	side := func(from, to string, span *scm.Span) func() error {
		return func() error {
			c, resp, err := r.api.Repositories.Compare(r.project, &gl.CompareOptions{From: ref(from), To: ref(to), Straight: ref(false)}, gl.WithContext(gctx))
			if e := r.explain(resp, err); e != nil {
				return r.fail(fmt.Sprintf("compare %s with %s", short(from), short(to)), e)
			}
			all := newestFirst(c.Commits)
			*span = scm.Span{Count: len(all), Commits: all[:min(len(all), scm.ComparedCommits)]}
			return nil
		}
	}
	g.Go(side(base, head, &out.Ahead))
	g.Go(side(head, base, &out.Behind))
	return out, g.Wait()
}

func paths(diffs []*gl.Diff) []string {
	var all []string
	for _, d := range diffs {
		all = append(all, d.OldPath, d.NewPath)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// newestFirst turns GitLab's order around.
func newestFirst(commits []*gl.Commit) []scm.Commit {
	var all []scm.Commit
	for _, c := range slices.Backward(commits) {
		all = append(all, commit(c))
	}
	return all
}
