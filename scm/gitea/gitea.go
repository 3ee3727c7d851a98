// Package gitea implements scm.Repository on Gitea and Forgejo.
//
// From Gitea 1.26 on an existing branch is moved by compare and swap: the commit
// is made on a temporary branch (tagboat-tmp/…, deleted again) and published by
// PUT branches with the commit that was read as old_commit_id, which Gitea hands
// to git push --force-with-lease. What runs on every push may leave out
// tagboat-tmp/**. Before, and on Forgejo, a commit is appended to
// the branch, guarded by the blob ids of the files; see Commit.
package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tagboat/scm"
)

// Options say which repository, and with which credential.
type Options struct {
	BaseURL string // the server, with the path it is served below: https://git.acme.example/gitea
	Owner   string
	Name    string
	Token   string // "" reads what everybody may read
	// Version is the server's own version string ("1.26.0",
	// "11.0.1+gitea-1.22.0"). "" asks the server once, at the same time as the
	// first Tip.
	Version string
	// HTTP says how requests travel: CA file, budget for retries, clock. Host and
	// Authorize are set here.
	HTTP scm.TransportOptions
}

// Repository is one repository on a Gitea or Forgejo server. It implements
// scm.Repository and is safe for concurrent use.
type Repository struct {
	base, path, host string // the server's URL, the path in it, its host and port
	owner, name      string
	token            bool
	transport        *scm.Transport
	http             *http.Client
	sleep            func(context.Context, time.Duration) error
	noTreePath       atomic.Bool // the server was seen to refuse "SHA:path" for a tree

	mu       sync.Mutex
	asking   chan struct{} // closed when version is known; nil: not asked yet
	version  string
	fallback string         // the default branch, once it is known
	drafts   map[int]string // the draft prefix in the title of a pull request that was seen
}

var _ scm.Repository = (*Repository)(nil)

// New checks the options and makes no call.
func New(o Options) (*Repository, error) {
	u, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("open Gitea repository %s/%s: the base URL cannot be parsed", o.Owner, o.Name)
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("open Gitea repository %s/%s: base URL %q is no http(s) URL", o.Owner, o.Name, u.Redacted())
	}
	if o.Owner == "" || o.Name == "" || strings.Contains(o.Owner+o.Name, "/") {
		return nil, fmt.Errorf("open Gitea repository: %q is not owner/name", o.Owner+"/"+o.Name)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	o.HTTP.Host, o.HTTP.Authorize = u.String(), authorize(o.Token)
	t, err := scm.NewTransport(o.HTTP)
	if err != nil {
		return nil, fmt.Errorf("open Gitea repository %s/%s: %w", o.Owner, o.Name, err)
	}
	r := &Repository{
		base: u.String(), path: u.Path, host: u.Host, owner: o.Owner, name: o.Name, token: o.Token != "",
		transport: t, http: t.Client(), sleep: o.HTTP.Sleep, drafts: map[int]string{},
	}
	if r.sleep == nil {
		r.sleep = sleep
	}
	if o.Version != "" {
		r.version, r.asking = o.Version, make(chan struct{})
		close(r.asking)
	}
	return r, nil
}

func authorize(token string) func(*http.Request) error {
	if token == "" {
		return nil
	}
	return func(req *http.Request) error {
		req.Header.Set("Authorization", "token "+token)
		return nil
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// About implements scm.Repository.
func (r *Repository) About() scm.About {
	web := r.base + "/" + r.owner + "/" + r.name
	a := scm.About{
		Forge: "gitea", Host: r.host, Name: r.owner + "/" + r.name, URL: web, CompareURL: web + "/compare/",
		PullRequestWord: "pull request", PullRequestMark: "#",
		BodyLimit:    65000, // Gitea stores LONGTEXT; an older MySQL scheme holds 65,535 bytes
		PullRequests: true,
	}
	if !r.token {
		a.Warnings = append(a.Warnings, "no token for "+r.host+": public repositories can be read, nothing can be written")
	}
	return a
}

// describe says which repository an error is about.
func (r *Repository) describe(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s on %s/%s: %w", fmt.Sprintf(format, args...), r.host, r.owner+"/"+r.name, err)
}

// features is what a server can do.
type features struct {
	swap    bool // PUT branches/{branch} with old_commit_id
	runs    bool // GET actions/runs/{run}, which tells who started it
	strict  bool // the statuses of a commit that is not there are 404; else there are none
	unknown bool // the server did not tell its version: try, and believe a 404 or 405
}

// features tells what the server can do; it asks for the version unless it is
// known. A server that does not tell has unknown set.
func (r *Repository) features(ctx context.Context) (features, error) {
	r.mu.Lock()
	asking, first := r.asking, r.asking == nil
	if first {
		r.asking = make(chan struct{})
		asking = r.asking
	}
	r.mu.Unlock()
	if first {
		version, err := r.askVersion(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.asking = nil
		}
		r.version = version
		close(asking)
		return parseFeatures(version), err
	}
	select {
	case <-ctx.Done():
		return features{unknown: true}, ctx.Err()
	case <-asking:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return parseFeatures(r.version), nil
}

// askVersion asks for the version. A refusal is an unknown version, no error:
// administrators may require a login for it.
func (r *Repository) askVersion(ctx context.Context) (string, error) {
	var v struct{ Version string }
	_, err := r.call(ctx, request{method: http.MethodGet, path: "/version", out: &v})
	if err != nil && ctx.Err() != nil {
		return "", err
	}
	return v.Version, nil
}

// parseFeatures reads Gitea's version ("1.26.0", "1.27.0+dev-12-gabc"). Forgejo
// names the Gitea it once was behind a plus sign ("11.0.1+gitea-1.22.0").
func parseFeatures(version string) features {
	if strings.Contains(version, "+gitea-") {
		return features{}
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return features{swap: true, runs: true, unknown: true}
	}
	since := func(n int) bool { return major > 1 || major == 1 && minor >= n }
	return features{swap: since(26), runs: since(25), strict: since(24)}
}
