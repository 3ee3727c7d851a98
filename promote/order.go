package promote

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/registry"
)

// age is what can be said of the order of two images.
type age int

const (
	unknown age = iota
	older       // the asked image is older
	newer
)

// outdated says in one sentence why an image of this run is older than what is
// already pinned or proposed for its entry; "" where none is, or nothing is known.
func (r *run) outdated(ctx context.Context, sets []overlay.Set, resolved []Resolved, present []record.Edit, where string) string {
	if r.q.AllowOlder {
		return ""
	}
	reasons := make([]string, len(sets))
	var wait sync.WaitGroup
	for i, set := range sets {
		have := presentFor(present, set)
		if have == nil || have.Image.Tag+have.Image.Digest == "" || have.Image.Digest == set.To.Digest || image.CheckRepository(have.Image.Repository) != nil {
			continue
		}
		wait.Go(func() {
			facts := factsOf(resolved, set.To.Digest)
			old, err := r.factsAt(ctx, have.Image)
			if err != nil {
				return // what is no longer there tells nothing
			}
			if which, why := r.compare(ctx, set.To, facts, old); which == older {
				asked, there := apart(set.To, have.Image)
				reasons[i] = fmt.Sprintf("%s is older than %s, which is %s for entry %s (%s)", asked, there, where, set.Entry.Name, why)
			}
		})
	}
	wait.Wait()
	reasons = slices.DeleteFunc(reasons, func(s string) bool { return s == "" })
	if len(reasons) == 0 {
		return ""
	}
	return strings.Join(reasons, "; ") + ": propose it with --allow-older"
}

// apart names two images by their tags, or by their digests where these tell no
// difference.
func apart(a, b image.Reference) (string, string) {
	if a.Tag != "" && b.Tag != "" && a.Tag != b.Tag {
		return oneLine(a.Tag), oneLine(b.Tag)
	}
	return pin(image.Reference{Tag: a.Tag, Digest: shortDigest(a.Digest)}), pin(image.Reference{Tag: b.Tag, Digest: shortDigest(b.Digest)})
}

// factsAt gives the facts of what is pinned, asked for once in a run; a tag alone is
// what it points at now. A failure is not remembered: who asks next may wait longer.
func (r *run) factsAt(ctx context.Context, ref image.Reference) (registry.Facts, error) {
	r.learnt.mu.Lock()
	answer, ok := r.learnt.facts[ref]
	if !ok {
		answer = sync.OnceValues(func() (registry.Facts, error) { return r.askFacts(ctx, ref) })
		if r.learnt.facts == nil {
			r.learnt.facts = map[image.Reference]func() (registry.Facts, error){}
		}
		r.learnt.facts[ref] = answer
	}
	r.learnt.mu.Unlock()
	facts, err := answer()
	if err != nil {
		r.learnt.mu.Lock()
		delete(r.learnt.facts, ref)
		r.learnt.mu.Unlock()
	}
	return facts, err
}

func (r *run) askFacts(ctx context.Context, ref image.Reference) (registry.Facts, error) {
	if ref.Digest == "" {
		found, errs := r.Registry.ResolveAll(ctx, []registry.Query{{Reference: ref}})
		if errs[0] != nil {
			return registry.Facts{}, errs[0]
		}
		ref = found[0].Reference
	}
	return r.Registry.Facts(ctx, ref)
}

func presentFor(present []record.Edit, set overlay.Set) *record.Edit {
	for i, e := range present {
		if sameEntry(set.Entry, overlay.Entry{Dir: path.Dir(e.File), File: e.File, Name: e.Entry}) {
			return &present[i]
		}
	}
	return nil
}

func factsOf(resolved []Resolved, digest string) registry.Facts {
	for _, r := range resolved {
		if r.Reference.Digest == digest {
			return r.Facts
		}
	}
	return registry.Facts{}
}

// compare orders two images by their source revisions where their source can be
// read, else by when they were created where both tell. ref is what is asked.
func (r *run) compare(ctx context.Context, ref image.Reference, asked, present registry.Facts) (age, string) {
	if which, why := r.ancestry(ctx, r.sourceOf(ref), asked, present); which != unknown {
		return which, why
	}
	switch {
	case asked.Created.IsZero() || present.Created.IsZero() || asked.Created.Equal(present.Created):
		return unknown, ""
	case asked.Created.Before(present.Created):
		return older, fmt.Sprintf("created %s, the other %s", asked.Created.UTC().Format(time.DateTime), present.Created.UTC().Format(time.DateTime))
	}
	return newer, ""
}

// commitID is git's object id, by SHA-1 or SHA-256.
var commitID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// ancestry asks the source repository; see pairOf for which one that is.
func (r *run) ancestry(ctx context.Context, source string, asked, present registry.Facts) (age, string) {
	p, _ := r.pairOf(source, asked, present)
	if p == (pair{}) || p.from == p.to {
		return unknown, ""
	}
	switch r.commitsBetween(ctx, p).Relation {
	case Behind:
		return older, fmt.Sprintf("commit %s comes before %s", short(p.to), short(p.from))
	case Ahead:
		return newer, ""
	}
	return unknown, ""
}

// pinned lists what entries run at the base, as edits.
func pinned(entries []overlay.Entry) []record.Edit {
	var out []record.Edit
	for _, e := range entries {
		out = append(out, record.Edit{File: e.File, Entry: e.Name, Image: e.Runs()})
	}
	return out
}

// digests lists the digests that the base pins.
func digests(entries []overlay.Entry) []string {
	var out []string
	for _, e := range entries {
		if image.CheckDigest(e.Digest) == nil {
			out = append(out, e.Digest)
		}
	}
	return out
}
