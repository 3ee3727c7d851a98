package gitlab_test

import (
	"testing"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

func TestConform(t *testing.T) {
	scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
		w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) {
			s.Users["eve"] = 13
		})
		person := &scmtest.StorePerson{Store: w.store, Group: "acme/", Words: map[scm.Permission]string{
			scm.PermissionRead: "20", scm.PermissionWrite: "30", scm.PermissionAdmin: "40",
		}}
		return scmtest.Harness{
			Repo: w.repo, Person: person, Reviewer: "mei", Ghost: "ghost",
			Can: scmtest.Can{
				PullRequests: true, Protection: true, Forks: true, Draft: true, AutoMerge: true,
				Labels: true, Reviewers: true, UpdatesPR: true, MergesNow: true, Dispatch: true, Runs: true,
			},
		}
	})
}
