// Package github is one repository on GitHub: github.com, *.ghe.com or GitHub
// Enterprise Server. It reads and writes git objects over REST, moves an existing
// branch by GraphQL's updateRefs (the only compare and swap that GitHub has), and
// keeps one pull request. go-github stays inside this folder.
package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

// bodyLimit is how many characters GitHub takes in a pull request's body or a
// comment.
const bodyLimit = 65536

// Options says which repository, and with which credential.
type Options struct {
	// BaseURL is the REST API: https://api.github.com (also when empty),
	// https://HOST/api/v3 for GitHub Enterprise Server, https://api.SUB.ghe.com.
	// APIURL makes it from a host name. The GraphQL address follows from it.
	BaseURL     string
	Owner, Name string

	// Token is any token of GitHub: personal, installation or GITHUB_TOKEN. Empty
	// reads a public repository. App, where given, is used instead.
	Token string
	// ActionsToken says that Token is the job's own GITHUB_TOKEN, whose pull
	// requests are held back by GitHub: it only adds to About().Warnings.
	ActionsToken bool
	App          *App

	// Transport says how requests travel: CA files, budget for waiting, user agent,
	// clock. Host and Authorize are set here.
	Transport scm.TransportOptions
	// OnSecret is told every secret (token, private key, minted JWT and token)
	// before its first use, so that a CI log can mask it.
	OnSecret func(secret string)
}

// Repository is a repository on GitHub. New makes one.
type Repository struct {
	owner, name string
	web         string // address for people
	host        string
	base        *url.URL // REST, with a trailing slash
	graphqlURL  string
	transport   *scm.Transport
	http        *http.Client
	app         *appCredential // nil: a token
	actions     bool
	token       tokenKind
	sleep       func(context.Context, time.Duration) error

	mu      sync.Mutex
	node    string            // node id of the repository, once known
	trees   map[string]string // commit SHA to tree SHA
	dirs    map[string]*listing
	byPath  bool // the server has answered git/trees/COMMIT:PATH before
	pending []string
	noSwap  bool // GraphQL's updateRefs is not served
}

var slug = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// New checks o and makes the repository; it makes no call.
func New(o Options) (*Repository, error) {
	for what, s := range map[string]string{"owner": o.Owner, "name": o.Name} {
		if !slug.MatchString(s) || s == "." || s == ".." {
			return nil, fmt.Errorf("github repository %q: the %s is not of the form OWNER/NAME", o.Owner+"/"+o.Name, what)
		}
	}
	at, err := addressesOf(o.BaseURL)
	if err != nil {
		return nil, err
	}
	r := &Repository{
		owner: o.Owner, name: o.Name, web: at.web + "/" + o.Owner + "/" + o.Name, host: at.host,
		base: at.rest, graphqlURL: at.graphql,
		trees: map[string]string{}, dirs: map[string]*listing{},
	}
	if err := checkToken(o.Token); err != nil {
		return nil, err
	}
	if err := r.connect(o); err != nil {
		return nil, err
	}
	return r, nil
}

// About tells what the repository is, without a call. Its warnings grow when a
// later call finds that the server lacks compare and swap.
func (r *Repository) About() scm.About {
	return scm.About{
		Forge: "github", Host: r.host, Name: r.owner + "/" + r.name, URL: r.web, CompareURL: r.web + "/compare/",
		PullRequestWord: "pull request", PullRequestMark: "#",
		BodyLimit: bodyLimit, PullRequests: true, TellsAutoMerge: true, Warnings: r.warnings(),
	}
}

// api is a fresh client for every call: go-github v60 remembers a rate limit that
// it has seen and then refuses later calls by itself. Waiting is the transport's.
func (r *Repository) api() *github.Client {
	c := github.NewClient(r.http)
	c.BaseURL = r.base
	return c
}

// get reads path below the repository into out.
func (r *Repository) get(ctx context.Context, path string, query url.Values, out any) (*github.Response, error) {
	u := "repos/" + r.owner + "/" + r.name
	if path != "" {
		u += "/" + path
	}
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	c := r.api()
	req, err := c.NewRequest(http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, req, out)
}

// escape escapes every segment of a branch or path: GitHub wants the slashes raw.
func escape(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// checkBranch refuses names that git forbids and that would make another URL.
func checkBranch(branch string) error {
	bad := branch == "" || strings.HasPrefix(branch, "/") || strings.HasSuffix(branch, "/") ||
		strings.Contains(branch, "..") || strings.Contains(branch, "//") || strings.ContainsAny(branch, " ~^:?*[\\\x7f")
	for _, part := range strings.Split(branch, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	for _, c := range branch {
		bad = bad || c < ' '
	}
	if bad {
		return fmt.Errorf("branch %q: not a lawful branch name (see git check-ref-format)", branch)
	}
	return nil
}

// note keeps a warning for the next Propose, once.
func (r *Repository) note(warning string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.pending {
		if w == warning {
			return
		}
	}
	r.pending = append(r.pending, warning)
}

func (r *Repository) takeNotes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	notes := r.pending
	r.pending = nil
	return notes
}

var errEmptyAnswer = errors.New("the answer does not carry what was asked for: is this GitHub's API?")
