package scm

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"runtime"
	"strings"
	"unicode"
)

// The forges, as About.Forge and --forge name them.
const (
	GitHub = "github"
	GitLab = "gitlab"
	Gitea  = "gitea" // Forgejo and Codeberg too
	Git    = "git"   // any remote, without pull requests
)

// Location is where a repository is, as --repo says it.
type Location struct {
	Forge    string // github, gitlab, gitea or git; "" where the host does not tell: ask for --forge
	Scheme   string // https, http, ssh or file: how it was given
	Host     string // host and port as given; "" for file
	BaseURL  string // of the forge for people, without a final slash: https://git.example; "" for file and where Forge is git
	Name     string // owner/name or group/sub/name; the absolute path for file
	CloneURL string // for git; no credential in it but the user name of ssh
}

// Server is a forge that CI vouches for: its URL (GITHUB_SERVER_URL,
// CI_SERVER_URL; a path below the host is the forge's root) and which forge it is.
type Server struct{ URL, Forge string }

// LocateOptions help Locate with what the text does not say.
type LocateOptions struct {
	Forge string // what the user named; "" guesses where the host is sure
	CI    Server // the zero value outside CI
}

var (
	bareName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$`)
	drive    = regexp.MustCompile(`^[A-Za-z]:(/|$)`)
	scpLike  = regexp.MustCompile(`^([A-Za-z0-9_.-]+)@([A-Za-z0-9.-]+):([^:]+)$`)
)

// Locate reads owner/name, group/sub/name, an https://, http://, ssh:// or file://
// URL, or user@host:path. A name without a host is on CI's server, else on the
// public server of the forge that was named (github.com for none). A URL that
// holds a credential is refused and never repeated.
func Locate(repo string, o LocateOptions) (Location, error) {
	repo = strings.TrimSpace(repo)
	l, err := locate(repo, o)
	if err == nil {
		err = l.check(o)
	}
	if err != nil {
		return Location{}, fmt.Errorf("repository: %w", err)
	}
	return l, nil
}

func locate(repo string, o LocateOptions) (Location, error) {
	switch o.Forge {
	case "", GitHub, GitLab, Gitea, Git:
	default:
		return Location{}, fmt.Errorf("forge %q is none of github, gitlab, gitea, git", o.Forge)
	}
	switch {
	case repo == "":
		return Location{}, errors.New("is empty: say owner/name or a URL")
	case strings.IndexFunc(repo, func(r rune) bool { return unicode.IsControl(r) || r == ' ' }) >= 0:
		return Location{}, errors.New("holds a space or a control character")
	case strings.Contains(repo, "://"):
		return locateURL(repo, o)
	case scpLike.MatchString(repo):
		m := scpLike.FindStringSubmatch(repo)
		return located(&url.URL{Scheme: "ssh", User: url.User(m[1]), Host: m[2], Path: "/" + strings.TrimPrefix(m[3], "/")}, o)
	case strings.Contains(repo, "@"):
		return Location{}, errors.New("looks like a URL with a credential: give the token in the environment")
	case strings.HasPrefix(repo, "/"), strings.HasPrefix(repo, "."), strings.Contains(repo, `\`), drive.MatchString(repo):
		return Location{}, fmt.Errorf("%q is a path: write file:///absolute/path", repo)
	case !bareName.MatchString(strings.TrimSuffix(repo, "/")):
		return Location{}, fmt.Errorf("%q is neither owner/name nor a URL", repo)
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(repo, "/"), "/")
	if SureForge(first) != "" && strings.Contains(rest, "/") {
		return locateURL("https://"+repo, o)
	}
	server, err := o.server()
	if err != nil {
		return Location{}, err
	}
	return locateURL(server+"/"+repo, o)
}

// server is where a name without a host is.
func (o LocateOptions) server() (string, error) {
	if o.CI.URL != "" && (o.Forge == "" || o.Forge == o.CI.Forge) {
		return strings.TrimSuffix(o.CI.URL, "/"), nil
	}
	switch o.Forge {
	case "", GitHub:
		return "https://github.com", nil
	case GitLab:
		return "https://gitlab.com", nil
	}
	return "", fmt.Errorf("a name alone does not tell which %s server: give the repository's URL", o.Forge)
}

func locateURL(repo string, o LocateOptions) (Location, error) {
	u, err := url.Parse(repo)
	if err != nil {
		return Location{}, errors.New("is no lawful URL") // url.Error repeats the text
	}
	if _, secret := u.User.Password(); secret || u.User != nil && u.Scheme != "ssh" || u.RawQuery != "" || u.Fragment != "" {
		return Location{}, errors.New("the URL holds a credential or a query: leave it out and give the token in the environment")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") || path.Clean(u.Path) == "/" {
			return Location{}, errors.New("a file URL has three slashes and an absolute path: file:///srv/config.git")
		}
		clean := path.Clean(u.Path)
		return Location{Forge: Git, Scheme: "file", Name: onDisk(clean, runtime.GOOS), CloneURL: (&url.URL{Scheme: "file", Path: clean}).String()}, nil
	case "https", "http", "ssh":
		return located(u, o)
	}
	return Location{}, fmt.Errorf("scheme %q is none of https, http, ssh, file", u.Scheme)
}

// onDisk is what a system calls the path of a file URL: Windows has a drive where
// the URL has a slash before it (RFC 8089, appendix E.2).
func onDisk(path, system string) string {
	if system == "windows" && drive.MatchString(path[1:]) {
		return path[1:]
	}
	return path
}

func located(u *url.URL, o LocateOptions) (Location, error) {
	if u.Hostname() == "" {
		return Location{}, errors.New("the URL names no host")
	}
	u.Path, _, _ = strings.Cut(u.Path, "/-/") // a page of GitLab
	u.RawPath = ""
	l := Location{Scheme: u.Scheme, Host: u.Host, CloneURL: u.String()}
	l.Forge, l.BaseURL = o.Forge, base(u)
	name := u.Path
	if ci, err := url.Parse(o.CI.URL); err == nil && o.CI.URL != "" && strings.EqualFold(ci.Hostname(), u.Hostname()) &&
		(u.Scheme == "ssh" || ci.Host == u.Host) {
		if root := strings.TrimSuffix(ci.Path, "/"); root != "" && strings.HasPrefix(name, root+"/") {
			name = strings.TrimPrefix(name, root)
		}
		l.BaseURL = strings.TrimSuffix(o.CI.URL, "/")
		if l.Forge == "" {
			l.Forge = o.CI.Forge
		}
	}
	if l.Forge == "" {
		l.Forge = SureForge(u.Hostname())
	}
	l.Name = strings.TrimSuffix(strings.Trim(name, "/"), ".git")
	if l.Forge == Git {
		l.BaseURL = ""
	}
	return l, nil
}

// base is the forge's own URL: ssh has another port than the web.
func base(u *url.URL) string {
	if u.Scheme == "ssh" {
		return "https://" + u.Hostname()
	}
	return u.Scheme + "://" + u.Host
}

// SureForge tells the forge of a host where no other answer is possible, else "".
func SureForge(host string) string {
	switch host = strings.ToLower(host); {
	case host == "github.com", strings.HasSuffix(host, ".ghe.com"):
		return GitHub
	case host == "gitlab.com":
		return GitLab
	case host == "codeberg.org", host == "gitea.com":
		return Gitea
	}
	return ""
}

// check holds a name to what the forge can have.
func (l Location) check(o LocateOptions) error {
	if l.Scheme == "file" {
		if o.Forge != "" && o.Forge != Git {
			return fmt.Errorf("a file URL is plain git, not %s", o.Forge)
		}
		return nil
	}
	elements := strings.Split(l.Name, "/")
	for _, e := range elements {
		if e == "" || e == "." || e == ".." {
			return fmt.Errorf("%q is no repository's name", l.Name)
		}
	}
	switch {
	case l.Forge == Git:
		return nil
	case len(elements) < 2:
		return fmt.Errorf("%q names no repository: say owner/name", l.Name)
	case len(elements) > 2 && (l.Forge == GitHub || l.Forge == Gitea):
		return fmt.Errorf("%q is more than owner/name on %s", l.Name, l.Host)
	}
	return nil
}
