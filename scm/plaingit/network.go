package plaingit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/go-git/go-git/v5/storage/memory"

	"tagboat/scm"
)

// network is a repository on another machine; what was fetched of it is in memory.
type network struct {
	client   transport.Transport
	endpoint *transport.Endpoint
	auth     transport.AuthMethod
	storage  *memory.Storage
	tips     []plumbing.Hash // fetched before: the remote need not send them again
}

func openNetwork(l scm.Location, o Options) (remote, storer.EncodedObjectStorer, error) {
	endpoint, err := transport.NewEndpoint(l.CloneURL)
	if err != nil {
		return nil, nil, errors.New("is no lawful URL")
	}
	n := &network{endpoint: endpoint, storage: memory.NewStorage()}
	if l.Scheme == "ssh" {
		n.client = gitssh.NewClient(nil)
		n.auth, err = sshAuth(endpoint.User, o)
	} else {
		n.client, err = httpClient(l, o)
	}
	return n, n.storage, err
}

func sshAuth(user string, o Options) (transport.AuthMethod, error) {
	if user == "" {
		user = "git"
	}
	if o.SSHKeyFile != "" {
		keys, err := gitssh.NewPublicKeysFromFile(user, o.SSHKeyFile, o.SSHKeyPassphrase)
		if err != nil {
			return nil, fmt.Errorf("%w: read SSH key %s: %w", scm.ErrDenied, o.SSHKeyFile, err)
		}
		return keys, nil
	}
	if os.Getenv("SSH_AUTH_SOCK") == "" {
		return nil, fmt.Errorf("%w: no SSH key file is given and no SSH agent runs (SSH_AUTH_SOCK is not set)", scm.ErrDenied)
	}
	agent, err := gitssh.NewSSHAgentAuth(user)
	if err != nil {
		return nil, fmt.Errorf("%w: ask the SSH agent: %w", scm.ErrDenied, err)
	}
	return agent, nil
}

func httpClient(l scm.Location, o Options) (transport.Transport, error) {
	t := o.Transport
	t.Host, t.CAFiles, t.UserAgent = l.CloneURL, o.CAFiles, "git/tagboat"
	if o.Token != "" {
		if l.Scheme == "http" && !loopback(l.Host) {
			return nil, fmt.Errorf("%w: a token is not sent over http:// to %s: use https://", scm.ErrRefused, l.Host)
		}
		user := o.Username
		if user == "" {
			user = "git"
		}
		t.Authorize = func(r *http.Request) error {
			r.SetBasicAuth(user, o.Token)
			return nil
		}
	}
	rt, err := scm.NewTransport(t)
	if err != nil {
		return nil, err
	}
	return githttp.NewClientWithOptions(&http.Client{Transport: rt}, &githttp.ClientOptions{}), nil
}

func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (n *network) complete() bool {
	shallow, err := n.storage.Shallow()
	return err == nil && len(shallow) == 0 && len(n.tips) > 0
}

func (n *network) read(ctx context.Context, depth int, pick func(refs) []plumbing.Hash) (out refs, err error) {
	ctx = scm.AsRead(ctx)
	session, err := n.client.NewUploadPackSession(n.endpoint, n.auth)
	if err != nil {
		return out, n.explain(ctx, err)
	}
	defer func() { err = closed(err, session) }()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return out, n.explain(ctx, err)
	}
	if out, err = refsOf(adv); err != nil {
		return out, err
	}
	wants := pick(out)
	if depth > 0 {
		wants = slices.DeleteFunc(wants, func(h plumbing.Hash) bool { return n.storage.HasEncodedObject(h) == nil })
	}
	if len(wants) == 0 {
		return out, nil
	}
	return out, n.explain(ctx, n.fetch(ctx, session, adv, depth, wants))
}

// closed closes a session; its error matters only if nothing else went wrong, and
// an ssh session that was left early complains always.
func closed(err error, session io.Closer) error {
	_ = session.Close()
	return err
}

func refsOf(adv *packp.AdvRefs) (refs, error) {
	out := refs{heads: map[string]plumbing.Hash{}}
	all, err := adv.AllReferences()
	if err != nil {
		return out, fmt.Errorf("read the list of branches: %w", err)
	}
	for name, ref := range all {
		switch {
		case name.IsBranch():
			out.heads[name.Short()] = ref.Hash()
		case name == plumbing.HEAD && ref.Type() == plumbing.SymbolicReference:
			out.main = ref.Target().Short()
		}
	}
	return out, nil
}

// fetch brings wants into memory.
func (n *network) fetch(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs, depth int, wants []plumbing.Hash) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	if adv.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return err
		}
	}
	req.Wants = wants
	if err := n.bound(req, adv, depth); err != nil {
		return err
	}
	resp, err := session.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Close() }()
	if err := n.updateShallow(resp); err != nil {
		return err
	}
	if err := packfile.UpdateObjectStorage(n.storage, demuxed(req.Capabilities, resp)); err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return err
	}
	n.tips = append(n.tips, wants...)
	return nil
}

// bound limits the history where the server can, and tells it what is here.
func (n *network) bound(req *packp.UploadPackRequest, adv *packp.AdvRefs, depth int) (err error) {
	req.Haves = n.tips
	if !adv.Capabilities.Supports(capability.Shallow) {
		return nil
	}
	if req.Shallows, err = n.storage.Shallow(); err != nil {
		return err
	}
	if depth == 0 {
		depth = math.MaxInt32 // what git calls unshallow
	}
	req.Depth = packp.DepthCommits(depth)
	return req.Capabilities.Set(capability.Shallow)
}

func (n *network) updateShallow(resp *packp.UploadPackResponse) error {
	known, err := n.storage.Shallow()
	if err != nil {
		return err
	}
	for _, h := range resp.Shallows {
		if !slices.Contains(known, h) {
			known = append(known, h)
		}
	}
	known = slices.DeleteFunc(known, func(h plumbing.Hash) bool { return slices.Contains(resp.Unshallows, h) })
	return n.storage.SetShallow(known)
}

func demuxed(c *capability.List, r io.Reader) io.Reader {
	switch {
	case c.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case c.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	}
	return r
}

// move pushes. The server compares old under its own lock; whatever it answers,
// the branch is read again, so that a lost answer is no lost commit and a lost
// race is told as one.
func (n *network) move(ctx context.Context, branch string, old, new plumbing.Hash, objects []plumbing.Hash) error {
	err := n.push(ctx, branch, old, new, objects)
	if err == nil || errors.Is(err, scm.ErrMoved) || errors.Is(err, scm.ErrDenied) {
		return err
	}
	all, again := n.read(ctx, 1, func(refs) []plumbing.Hash { return nil })
	switch {
	case again != nil:
		return errors.Join(err, again)
	case all.heads[branch] == new:
		return nil
	case all.heads[branch] != old:
		return fmt.Errorf("%w (%w)", movedFrom(branch, old, all.heads[branch]), err)
	case errors.Is(err, scm.ErrUnavailable) || ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %w", scm.ErrRefused, err)
}

func (n *network) push(ctx context.Context, branch string, old, new plumbing.Hash, objects []plumbing.Hash) (err error) {
	session, err := n.client.NewReceivePackSession(n.endpoint, n.auth)
	if err != nil {
		return n.explain(ctx, err)
	}
	defer func() { err = closed(err, session) }()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return n.explain(ctx, err)
	}
	all, err := refsOf(adv)
	if err != nil {
		return err
	}
	if at := all.heads[branch]; at != old {
		return movedFrom(branch, old, at)
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	req.Commands = []*packp.Command{{Name: plumbing.NewBranchReferenceName(branch), Old: old, New: new}}
	if new.IsZero() {
		if err := req.Capabilities.Set(capability.DeleteRefs); err != nil {
			return err
		}
	} else {
		pack := n.pack(objects)
		defer func() { _ = pack.Close() }()
		req.Packfile = pack
	}
	report, err := session.ReceivePack(ctx, req)
	if err == nil && report != nil {
		err = report.Error()
	}
	return n.explain(ctx, err)
}

func (n *network) pack(objects []plumbing.Hash) *io.PipeReader {
	r, w := io.Pipe()
	go func() {
		_, err := packfile.NewEncoder(w, n.storage, false).Encode(objects, 0)
		_ = w.CloseWithError(err)
	}()
	return r
}

// explain gives go-git's refusals our names.
func (n *network) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fmt.Errorf("%w: no such repository, or the credential cannot see it", scm.ErrNotFound)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return fmt.Errorf("%w: the repository has no commit yet", scm.ErrNotFound)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return fmt.Errorf("%w: %w", scm.ErrDenied, err)
	case strings.Contains(err.Error(), "ssh: unable to authenticate"):
		return fmt.Errorf("%w: %w: the server takes no key that was offered", scm.ErrDenied, err)
	case strings.Contains(err.Error(), "knownhosts: "):
		return fmt.Errorf("%w: %w: compare the host's key and put it into known_hosts (or the file that SSH_KNOWN_HOSTS names)", scm.ErrDenied, err)
	}
	var connection *net.OpError
	if errors.As(err, &connection) && !errors.Is(err, scm.ErrUnavailable) {
		return fmt.Errorf("%w: %w", scm.ErrUnavailable, err)
	}
	return err
}
