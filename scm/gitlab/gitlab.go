// Package gitlab is scm.Repository on the REST API of GitLab (gitlab.com and
// self-managed, also under a sub-path), through go-gitlab.
//
// What GitLab has, and what follows from it:
//   - One call makes a branch with one commit on a given parent (start_sha).
//   - A branch that exists can only be appended to, or be overwritten by force;
//     neither takes an expected old head. See Commit for what is done about it.
//   - Every refusal of a commit is a 400 with a text; refusal.go reads them.
//   - A CI_JOB_TOKEN can neither create commits nor merge requests; New refuses it.
//
// GitLab's source (gitlabhq/gitlabhq) was read where its documentation is silent;
// the comments name the file.
package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// bodyLimit is the number of characters that the description of a merge request
// may have (app/models/concerns/issuable.rb, DESCRIPTION_LENGTH_MAX).
const bodyLimit = 1_048_576

// perPage is the largest page that GitLab gives.
const perPage = 100

// TokenKind tells which header carries the token.
type TokenKind string

// The kinds of token. Personal, project and group access tokens and those of
// service accounts are private tokens.
const (
	PrivateToken TokenKind = ""      // PRIVATE-TOKEN
	OAuthToken   TokenKind = "oauth" // Authorization: Bearer
	JobToken     TokenKind = "job"   // JOB-TOKEN; New refuses it
)

// Options says which project, and with which credential.
type Options struct {
	BaseURL   string // of the GitLab, "" is https://gitlab.com; may have a path
	Project   string // group/sub/name, or the numeric id
	Token     string // "": only reading of what is public
	TokenKind TokenKind
	// TriggerToken is a pipeline trigger token of the project, or a CI_JOB_TOKEN that
	// its allowlist takes: Dispatch starts pipelines with it. Token then needs to
	// read only, and only where the run is followed.
	TriggerToken string

	// Transport says how requests travel: CA files, budget for waiting, clock. Host
	// and Authorize are set here.
	Transport scm.TransportOptions
}

// Repository is one project with one credential. It implements scm.Repository
// and is safe for concurrent use.
type Repository struct {
	about     scm.About
	project   string
	trigger   string
	transport *scm.Transport
	api       *gl.Client //nolint:staticcheck // deprecated, and this project's choice
	sleep     func(context.Context, time.Duration) error
	read      blobs
	listed    sync.Map // merge requests by number as PullRequests saw them; an update takes its own out
}

var _ scm.Repository = (*Repository)(nil)

// New makes no call. It refuses what cannot work: a malformed address or project,
// and a kind of token that GitLab lets neither commit nor open merge requests.
func New(o Options) (*Repository, error) {
	base, err := baseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	project := strings.Trim(strings.TrimSpace(o.Project), "/")
	if err := checkProject(project); err != nil {
		return nil, err
	}
	if err := checkToken(o); err != nil {
		return nil, fmt.Errorf("use GitLab project %s: %w", project, err)
	}
	r := &Repository{about: about(base, project, o), project: project, trigger: o.TriggerToken, sleep: o.Transport.Sleep}
	if r.sleep == nil {
		r.sleep = sleep
	}
	if err := r.connect(base, o); err != nil {
		return nil, fmt.Errorf("use GitLab at %s: %w", base, err)
	}
	return r, nil
}

// About tells what the project is. It makes no call.
func (r *Repository) About() scm.About { return r.about }

func about(base *url.URL, project string, o Options) scm.About {
	web := base.String() + "/" + project
	compare := web + "/-/compare/"
	if _, err := strconv.Atoi(project); err == nil { // an address of the project's page alone
		web, compare = base.String()+"/projects/"+project, ""
	}
	a := scm.About{
		Forge: "gitlab", Host: base.Host, Name: project, URL: web, CompareURL: compare,
		PullRequestWord: "merge request", PullRequestMark: "!",
		BodyLimit: bodyLimit, PullRequests: true, TellsAutoMerge: true,
	}
	if o.Token == "" {
		a.Warnings = append(a.Warnings, "no GitLab token: only what is public can be read, and nothing proposed")
	}
	return a
}

// baseURL is the address without a slash at its end, query or credential.
func baseURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		raw = "https://gitlab.com"
	}
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error repeats the address, which may hold a password.
		return nil, errors.New("use GitLab: the base URL is malformed, expected https://HOST[/PATH]")
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("use GitLab at %s: expected https://HOST[/PATH]", u.Redacted())
	}
	if u.User != nil {
		return nil, fmt.Errorf("use GitLab at %s: the base URL must not hold a credential", u.Redacted())
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v4")
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(path, "/")}, nil
}

func checkProject(project string) error {
	if _, err := strconv.Atoi(project); err == nil {
		return nil
	}
	parts := strings.Split(project, "/")
	if len(parts) < 2 {
		return fmt.Errorf("use GitLab project %q: expected group[/sub]/name or the numeric id", project)
	}
	for _, p := range parts {
		if p == "" || p == "." || p == ".." || strings.ContainsAny(p, " \t\r\n?#%\\") {
			return fmt.Errorf("use GitLab project %q: %q is no name of a group or project", project, p)
		}
	}
	return nil
}
