package scm_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
)

func TestLocate(t *testing.T) {
	gitlabCI := scm.LocateOptions{CI: scm.Server{URL: "https://git.example/gitlab", Forge: scm.GitLab}}
	cases := []struct {
		name, repo string
		o          scm.LocateOptions
		want       scm.Location
	}{
		{"a name", " acme/config\n", scm.LocateOptions{},
			scm.Location{Forge: "github", Scheme: "https", Host: "github.com", BaseURL: "https://github.com", Name: "acme/config", CloneURL: "https://github.com/acme/config"}},
		{"a name with a host", "gitlab.com/acme/team/config", scm.LocateOptions{},
			scm.Location{Forge: "gitlab", Scheme: "https", Host: "gitlab.com", BaseURL: "https://gitlab.com", Name: "acme/team/config", CloneURL: "https://gitlab.com/acme/team/config"}},
		{"a name in CI", "acme/team/config", gitlabCI,
			scm.Location{Forge: "gitlab", Scheme: "https", Host: "git.example", BaseURL: "https://git.example/gitlab", Name: "acme/team/config", CloneURL: "https://git.example/gitlab/acme/team/config"}},
		{"another forge's name in CI", "acme/config", scm.LocateOptions{Forge: "github", CI: gitlabCI.CI},
			scm.Location{Forge: "github", Scheme: "https", Host: "github.com", BaseURL: "https://github.com", Name: "acme/config", CloneURL: "https://github.com/acme/config"}},
		{"a URL below a root", "https://git.example/gitlab/acme/config.git", gitlabCI,
			scm.Location{Forge: "gitlab", Scheme: "https", Host: "git.example", BaseURL: "https://git.example/gitlab", Name: "acme/config", CloneURL: "https://git.example/gitlab/acme/config.git"}},
		{"GitLab by name", "acme/config", scm.LocateOptions{Forge: "gitlab"},
			scm.Location{Forge: "gitlab", Scheme: "https", Host: "gitlab.com", BaseURL: "https://gitlab.com", Name: "acme/config", CloneURL: "https://gitlab.com/acme/config"}},
		{"a page", "https://gitlab.com/acme/config/-/tree/main", scm.LocateOptions{},
			scm.Location{Forge: "gitlab", Scheme: "https", Host: "gitlab.com", BaseURL: "https://gitlab.com", Name: "acme/config", CloneURL: "https://gitlab.com/acme/config"}},
		{"an unknown host", "http://git.example:3000/acme/config.git/", scm.LocateOptions{},
			scm.Location{Scheme: "http", Host: "git.example:3000", BaseURL: "http://git.example:3000", Name: "acme/config", CloneURL: "http://git.example:3000/acme/config.git/"}},
		{"named Gitea", "https://git.example/acme/config", scm.LocateOptions{Forge: "gitea"},
			scm.Location{Forge: "gitea", Scheme: "https", Host: "git.example", BaseURL: "https://git.example", Name: "acme/config", CloneURL: "https://git.example/acme/config"}},
		{"plain git", "https://git.example/config.git", scm.LocateOptions{Forge: "git"},
			scm.Location{Forge: "git", Scheme: "https", Host: "git.example", Name: "config", CloneURL: "https://git.example/config.git"}},
		{"ssh", "ssh://git@git.example:2222/acme/config.git", scm.LocateOptions{},
			scm.Location{Scheme: "ssh", Host: "git.example:2222", BaseURL: "https://git.example", Name: "acme/config", CloneURL: "ssh://git@git.example:2222/acme/config.git"}},
		{"scp", "git@github.com:acme/config.git", scm.LocateOptions{},
			scm.Location{Forge: "github", Scheme: "ssh", Host: "github.com", BaseURL: "https://github.com", Name: "acme/config", CloneURL: "ssh://git@github.com/acme/config.git"}},
		{"ghe.com", "https://acme.ghe.com/acme/config", scm.LocateOptions{},
			scm.Location{Forge: "github", Scheme: "https", Host: "acme.ghe.com", BaseURL: "https://acme.ghe.com", Name: "acme/config", CloneURL: "https://acme.ghe.com/acme/config"}},
		{"file", "file:///srv/config.git/", scm.LocateOptions{},
			scm.Location{Forge: "git", Scheme: "file", Name: "/srv/config.git", CloneURL: "file:///srv/config.git"}},
		{"a file in a folder with a space", "file:///srv/acme%20gmbh/100%25.git", scm.LocateOptions{},
			scm.Location{Forge: "git", Scheme: "file", Name: "/srv/acme gmbh/100%.git", CloneURL: "file:///srv/acme%20gmbh/100%25.git"}},
		{"a file on a drive", "file:///C:/acme/config.git", scm.LocateOptions{},
			scm.Location{Forge: "git", Scheme: "file", Name: onThis("/C:/acme/config.git", "C:/acme/config.git"), CloneURL: "file:///C:/acme/config.git"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := scm.Locate(c.repo, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// onThis chooses between other systems and Windows.
func onThis(other, windows string) string {
	if runtime.GOOS == "windows" {
		return windows
	}
	return other
}

func TestLocateRefuses(t *testing.T) {
	cases := []struct {
		name, repo, forge, want string
	}{
		{"nothing", " ", "", "is empty"},
		{"a word", "config", "", "neither owner/name nor a URL"},
		{"a path", "/srv/config.git", "", "file:///"},
		{"a relative path", "./config", "", "is a path"},
		{"a path on a drive", `C:\config.git`, "", "is a path"},
		{"a path on a drive with slashes", "C:/config.git", "", "is a path"},
		{"a drive for a host", "file://C:/config.git", "", "three slashes"},
		{"dots", "acme/..", "", "neither"},
		{"dots in a URL", "https://git.example/acme/../x", "", "no repository's name"},
		{"a token", "https://x:s3cr3t@git.example/acme/config", "", "credential"},
		{"a token as user", "https://s3cr3t@git.example/acme/config", "", "credential"},
		{"a token in ssh", "ssh://git:s3cr3t@git.example/acme/config", "", "credential"},
		{"a token without a scheme", "x:s3cr3t@git.example/acme/config", "", "credential"},
		{"a query", "https://git.example/acme/config?private_token=s3cr3t", "", "credential or a query"},
		{"a broken URL", "https://s3cr3t:%zz@git.example/a/b", "", "no lawful URL"},
		{"too long for GitHub", "https://github.com/acme/config/tree", "", "more than owner/name"},
		{"too short", "https://gitlab.com/acme", "", "say owner/name"},
		{"another scheme", "ftp://git.example/acme/config", "", "none of https"},
		{"a space", "acme/con fig", "", "space"},
		{"an unknown forge", "acme/config", "bitbucket", "none of github"},
		{"Gitea without a server", "acme/config", "gitea", "repository's URL"},
		{"a file on a forge", "file:///srv/config.git", "gitlab", "plain git"},
		{"two slashes", "file://srv/config.git", "", "three slashes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := scm.Locate(c.repo, scm.LocateOptions{Forge: c.forge})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %+v, %v; want %q", got, err, c.want)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error repeats the credential: %v", err)
			}
		})
	}
}
