package scmtest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// GitServer serves a Store as git's smart HTTP does, protocol version 0, with
// shallow fetches and pushes that must name the old head. Any path will do. Like
// most servers it gives no commit that no branch is at.
type GitServer struct {
	Store *Store
	Token string // if set, the password of basic authentication; else 401

	mu         sync.Mutex
	beforePush func()
	loseAnswer bool
	sent       int
}

// BeforePush runs once, after the next push has seen the branches and before it
// moves one: what a person does just then.
func (g *GitServer) BeforePush(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.beforePush = do
}

// LoseAnswer lets the next push succeed and answers it with 502.
func (g *GitServer) LoseAnswer() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loseAnswer = true
}

// Sent is how many commits were sent to fetchers so far.
func (g *GitServer) Sent() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

// ServeHTTP implements http.Handler.
func (g *GitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); g.Token != "" && password != g.Token {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	var err error
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		err = g.advertise(w, r.URL.Query().Get("service"))
	case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		err = g.uploadPack(w, r)
	case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
		err = g.receivePack(w, r)
	default:
		http.NotFound(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (g *GitServer) advertise(w http.ResponseWriter, service string) error {
	s := g.Store
	s.mu.Lock()
	defer s.mu.Unlock()
	adv := packp.NewAdvRefs()
	adv.Prefix = [][]byte{[]byte("# service=" + service), pktline.Flush}
	for _, name := range s.branches() {
		h, _ := s.branch(name)
		adv.References[plumbing.NewBranchReferenceName(name).String()] = h
	}
	caps := []capability.Capability{capability.ReportStatus, capability.DeleteRefs, capability.OFSDelta}
	if service == "git-upload-pack" {
		caps = []capability.Capability{capability.Shallow, capability.OFSDelta, capability.NoProgress}
		if main, ok := s.branch(s.defaultBranch); ok {
			adv.Head = &main
			if err := adv.Capabilities.Add(capability.SymRef, "HEAD:refs/heads/"+s.defaultBranch); err != nil {
				return err
			}
		}
	}
	for _, c := range caps {
		if err := adv.Capabilities.Set(c); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	return adv.Encode(w)
}

func (g *GitServer) uploadPack(w http.ResponseWriter, r *http.Request) error {
	req := packp.NewUploadPackRequest()
	if err := req.Decode(r.Body); err != nil {
		return err
	}
	s := g.Store
	s.mu.Lock()
	defer s.mu.Unlock()
	depth := 1 << 30
	if d, ok := req.Depth.(packp.DepthCommits); ok && d > 0 {
		depth = int(d)
	}
	cut, err := s.cut(req.Wants, depth)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.sent += len(cut.commits)
	g.mu.Unlock()
	var pack bytes.Buffer
	if _, err := packfile.NewEncoder(&pack, s.git, false).Encode(cut.objects, 10); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	if !req.Depth.IsZero() {
		update := packp.ShallowUpdate{Shallows: cut.shallow}
		for _, h := range req.Shallows {
			if !slices.Contains(cut.shallow, h) && cut.commits[h] {
				update.Unshallows = append(update.Unshallows, h)
			}
		}
		if err := update.Encode(w); err != nil {
			return err
		}
	}
	if err := pktline.NewEncoder(w).EncodeString("NAK\n"); err != nil {
		return err
	}
	_, err = w.Write(pack.Bytes())
	return err
}

// cut is the part of the history that a shallow fetch sends.
type cut struct {
	commits map[plumbing.Hash]bool
	shallow []plumbing.Hash // sent without their parents
	objects []plumbing.Hash
}

func (s *Store) cut(wants []plumbing.Hash, depth int) (cut, error) {
	c := cut{commits: map[plumbing.Hash]bool{}}
	seen := map[plumbing.Hash]bool{}
	for _, want := range wants {
		if !slices.ContainsFunc(s.branches(), func(name string) bool { h, _ := s.branch(name); return h == want }) {
			return c, fmt.Errorf("upload-pack: not our ref %s", want)
		}
	}
	level := wants
	for ; depth > 0 && len(level) > 0; depth-- {
		var parents []plumbing.Hash
		for _, h := range level {
			if c.commits[h] {
				continue
			}
			commit, err := object.GetCommit(s.git, h)
			if err != nil {
				return c, err
			}
			c.commits[h] = true
			c.objects = append(c.objects, h)
			if err := collect(s.objects(), commit.TreeHash, seen, &c.objects); err != nil {
				return c, err
			}
			if depth == 1 && commit.NumParents() > 0 {
				c.shallow = append(c.shallow, h)
			}
			parents = append(parents, commit.ParentHashes...)
		}
		level = parents
	}
	return c, nil
}

func collect(s storer.EncodedObjectStorer, tree plumbing.Hash, seen map[plumbing.Hash]bool, objects *[]plumbing.Hash) error {
	if seen[tree] {
		return nil
	}
	seen[tree] = true
	*objects = append(*objects, tree)
	t, err := object.GetTree(s, tree)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		switch {
		case e.Mode == filemode.Dir:
			if err := collect(s, e.Hash, seen, objects); err != nil {
				return err
			}
		case e.Mode != filemode.Submodule && !seen[e.Hash]:
			seen[e.Hash] = true
			*objects = append(*objects, e.Hash)
		}
	}
	return nil
}

func (g *GitServer) receivePack(w http.ResponseWriter, r *http.Request) error {
	req := packp.NewReferenceUpdateRequest()
	if err := req.Decode(r.Body); err != nil {
		return err
	}
	if err := g.unpack(req); err != nil {
		return err
	}
	g.mu.Lock()
	before, lose := g.beforePush, g.loseAnswer
	g.beforePush, g.loseAnswer = nil, false
	g.mu.Unlock()
	if before != nil {
		before()
	}
	report := packp.NewReportStatus()
	report.UnpackStatus = "ok"
	for _, c := range req.Commands {
		report.CommandStatuses = append(report.CommandStatuses, &packp.CommandStatus{ReferenceName: c.Name, Status: g.Store.run(c)})
	}
	if lose {
		w.WriteHeader(http.StatusBadGateway)
		return nil
	}
	w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	return report.Encode(w)
}

func (g *GitServer) unpack(req *packp.ReferenceUpdateRequest) error {
	g.Store.mu.Lock()
	defer g.Store.mu.Unlock()
	if !slices.ContainsFunc(req.Commands, func(c *packp.Command) bool { return c.Action() != packp.Delete }) {
		return nil
	}
	return packfile.UpdateObjectStorage(g.Store.git, req.Packfile)
}

// run does one command of a push and answers in git's words.
func (s *Store) run(c *packp.Command) string {
	var err error
	switch c.Action() {
	case packp.Create:
		err = s.SetBranch(c.Name.Short(), "", c.New.String(), false)
	case packp.Delete:
		err = s.DeleteBranch(c.Name.Short(), c.Old.String())
	default:
		err = s.SetBranch(c.Name.Short(), c.Old.String(), c.New.String(), true)
	}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrProtected):
		return "protected branch hook declined"
	}
	return "failed to update ref"
}
