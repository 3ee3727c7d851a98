package promote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/record"
	"tagboat/scm"
)

// ErrCannotAsk is returned where tagboat.yaml has a rule that the forge cannot be
// asked for: that is an error of configuration, never a pass.
var ErrCannotAsk = errors.New("the forge cannot be asked")

// GateStatus says how a rule stands.
type GateStatus string

// The statuses of a gate. Pending may pass by itself; failed needs somebody.
const (
	GatePassed     GateStatus = "passed"
	GatePending    GateStatus = "pending"
	GateFailed     GateStatus = "failed"
	GateOverridden GateStatus = "overridden"
)

// Gate is how one rule of an environment stands for one promotion, and on what
// evidence. Evidence is plain text, partly of others: it is escaped where it is
// shown.
type Gate struct {
	Name     string
	Status   GateStatus
	Evidence string
	Link     string // for people; may be empty
}

// opens says whether the gate lets a promotion through.
func (g Gate) opens() bool { return g.Status == GatePassed || g.Status == GateOverridden }

// rules are what must be true before digests come to a place.
type rules struct {
	*order
	at      config.Place
	apps    []string // of a group several
	policy  config.Policy
	sources []*source
	asking  []string // who asks, as the forge vouches; nil: Request.Actor, else the token's own
	told    []string // who asks by the word of a job: it may take an approval away, no more
	back    *back    // what runs before comes back: only promoters are asked
}

// check asks for all of it. The answer is in a fixed order, freezes and holds first.
func (r *rules) check(ctx context.Context, images []image.Reference, holds Holds) ([]Gate, error) {
	gates, err := r.frozen()
	if err != nil {
		return nil, err
	}
	if r.back != nil {
		// freezes and holds stop what is new; a way back must be open at night and in a
		// freeze. Only the hold of another rollback stops what it does not allow.
		if gates, holds = []Gate{r.ran()}, holds.ofRollbacks(); r.back.unheld {
			holds = Holds{}
		}
	}
	now, _ := r.now()
	gates = append(gates, held(holds, r.at.Environment, r.apps, now, images)...)
	if len(r.policy.Promoters) > 0 {
		g, err := r.promoter(ctx)
		if err != nil {
			return nil, err
		}
		gates = append(gates, g)
	}
	for _, s := range r.sources {
		more, err := r.ofSource(ctx, s, images)
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", s.app, s.at, err)
		}
		gates = append(gates, more...)
	}
	if len(r.policy.Gates.Platforms) > 0 {
		// an image without one of them has not come this far
		gates = append(gates, Gate{Name: "platforms", Status: GatePassed, Evidence: strings.Join(r.policy.Gates.Platforms, ", ")})
	}
	return gates, nil
}

// ran tells that digests ran here before.
func (r *rules) ran() Gate {
	a := r.back.to
	g := Gate{Name: "history", Status: GatePassed, Link: linkOf(a)}
	g.Evidence = fmt.Sprintf("%s ran %s from commit %s on", r.at, references(a.Images), short(a.Commit.SHA))
	if !a.At.IsZero() {
		g.Evidence += ", " + stamp(a.At)
	}
	return g
}

// now is the time by the forge's clock, and whose clock it is.
func (o *order) now() (t time.Time, whose string) { return o.TimeOf(o.repo) }

func (r *rules) frozen() ([]Gate, error) {
	if len(r.policy.Freeze) == 0 {
		return nil, nil
	}
	now, whose := r.now()
	freeze, err := r.policy.FreezeAt(now)
	if err != nil {
		return nil, err
	}
	if freeze == nil {
		return []Gate{{Name: "freeze", Status: GatePassed, Evidence: "no freeze is on " + whose}}, nil
	}
	evidence := fmt.Sprintf("frozen from %s until %s, %s", stamp(freeze.Since), stamp(freeze.Until), whose)
	if freeze.Window.Reason != "" {
		evidence += ": " + freeze.Window.Reason
	}
	return []Gate{{Name: "freeze", Status: GatePending, Evidence: evidence}}, nil
}

// ofRollbacks are the holds that rollbacks have placed.
func (h Holds) ofRollbacks() Holds {
	var own Holds
	for _, hold := range h.All {
		if len(hold.Allow) > 0 {
			own.All = append(own.All, hold)
		}
	}
	return own
}

// held lists the holds that stop images on their way to an environment; of a group
// those of all its apps.
func held(holds Holds, environment string, apps []string, now time.Time, images []image.Reference) []Gate {
	var on []record.Hold
	for _, app := range apps {
		for _, hold := range holds.On(environment, app, now, digestsOf(images)) {
			if !slices.ContainsFunc(on, func(h record.Hold) bool { return h.Environment == hold.Environment && h.App == hold.App }) {
				on = append(on, hold)
			}
		}
	}
	gates := make([]Gate, len(on))
	for i, hold := range on {
		gates[i] = gateOf(hold)
	}
	return gates
}

func gateOf(hold record.Hold) Gate {
	what := hold.Environment
	if hold.App != "" {
		what = hold.App + " in " + what
	}
	evidence := what + " is held"
	if who := hold.Who(); who != "" {
		evidence += " by " + who
	}
	if !hold.Since.IsZero() {
		evidence += " since " + stamp(hold.Since)
	}
	if !hold.Until.IsZero() {
		evidence += " until " + stamp(hold.Until)
	}
	return Gate{Name: "hold", Status: GateFailed, Evidence: evidence + ": " + hold.Reason}
}

// ofSource checks what is asked of where the digests come from.
func (r *rules) ofSource(ctx context.Context, s *source, images []image.Reference) ([]Gate, error) {
	gates := r.inOrder(s, images)
	want := r.policy.Gates
	if want.Soak == 0 && len(want.Checks) == 0 && want.Approvals == 0 {
		return gates, nil
	}
	arrival, err := inventory.Arrived(ctx, s.target(), s.commit)
	if err != nil {
		return nil, err
	}
	if want.Soak > 0 {
		gates = append(gates, r.soaked(s, arrival))
	}
	if len(want.Checks) > 0 {
		checks, err := inventory.Checked(ctx, s.target(), s.commit, arrival, s.filled(want.Checks))
		if err != nil {
			return nil, err
		}
		for _, c := range checks {
			gates = append(gates, r.checked(s, c))
		}
	}
	if want.Approvals > 0 {
		g, err := r.approved(ctx, s, arrival)
		if err != nil {
			return nil, err
		}
		gates = append(gates, g)
	}
	return gates, nil
}

// name tells a gate of one source from that of another, where there are several.
func (r *rules) name(gate string, s *source) string {
	if len(r.sources) < 2 {
		return gate
	}
	if len(r.apps) > 1 {
		return fmt.Sprintf("%s (%s in %s)", gate, s.app, s.at)
	}
	return fmt.Sprintf("%s (%s)", gate, s.at)
}

// inOrder demands that the source runs the digests. Where they were read from it,
// it does.
func (r *rules) inOrder(s *source, images []image.Reference) []Gate {
	for n, ref := range s.images {
		i := slices.IndexFunc(images, func(asked image.Reference) bool { return s.same(n, asked) })
		if i >= 0 && images[i].Digest != ref.Digest {
			return []Gate{{Name: r.name("order", s), Status: GateFailed, Evidence: fmt.Sprintf("%s runs %s, not %s: promote it there first", s.at, ref, images[i]), Link: s.commitURL}}
		}
	}
	return []Gate{{Name: r.name("order", s), Status: GatePassed, Evidence: fmt.Sprintf("%s runs it at commit %s of %s", s.at, short(s.commit), s.branch), Link: s.commitURL}}
}

func (r *rules) soaked(s *source, arrival inventory.Arrival) Gate {
	now, _ := r.now()
	soak := time.Duration(r.policy.Gates.Soak)
	here := now.Sub(arrival.At)
	g := Gate{Name: r.name("soak", s), Status: GatePassed, Link: linkOf(arrival)}
	// no words that change by the minute: a status is posted where it says something new
	g.Evidence = fmt.Sprintf("in %s since %s, %s are asked for", s.at, stamp(arrival.At), config.Duration(soak))
	if here < soak {
		g.Status = GatePending
		g.Evidence += ", until " + stamp(arrival.At.Add(soak))
	}
	return g
}

func (r *rules) checked(s *source, c inventory.Check) Gate {
	g := Gate{Name: r.name("check "+c.Pattern, s), Link: c.URL}
	switch {
	case c.Context == "":
		g.Status, g.Evidence = GatePending, cmp.Or(c.Description, "no status of that name since the digest is there")
		return g
	case c.State == scm.StatusSuccess:
		g.Status = GatePassed
	case c.State == scm.StatusFailure:
		g.Status = GateFailed
	default:
		g.Status = GatePending
	}
	g.Evidence = fmt.Sprintf("%s is %s at %s", c.Context, c.Word, short(c.Commit))
	if c.Description != "" {
		g.Evidence += ": " + c.Description
	}
	return g
}

func linkOf(a inventory.Arrival) string {
	if a.PullRequest != nil {
		return a.PullRequest.URL
	}
	return a.Commit.URL
}

// stamp is a time for people: to the minute, in UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func digestsOf(images []image.Reference) []string {
	var out []string
	for _, ref := range images {
		out = append(out, ref.Digest)
	}
	return out
}

// gate asks the rules before anything is written, and says whether one of them
// stops the run. What was overridden is in the result with who did it.
func (r *run) gate(ctx context.Context, s *state, res *Result) (stopped bool, err error) {
	images := make([]image.Reference, len(res.Images))
	for i, img := range res.Images {
		images[i] = img.Reference
	}
	if r.q.rules == nil {
		now, _ := r.TimeOf(r.repo)
		res.Gates = held(s.holds, r.id.Environment, []string{r.id.App}, now, images)
	} else if res.Gates, err = r.q.rules.check(ctx, images, s.holds); err != nil {
		return false, err
	}
	if r.q.Override != "" && r.q.rules != nil && shut(res.Gates) != "" {
		by, refused, err := r.q.rules.override(ctx, res.Gates)
		if err != nil {
			return false, err
		}
		if res.OverriddenBy = by; by != "" {
			res.Override = r.q.Override
		}
		if refused != "" {
			res.Warnings = append(res.Warnings, "--override: "+refused)
		}
	}
	if why := shut(res.Gates); why != "" {
		res.Outcome, res.Reason = Blocked, why
		return true, nil
	}
	return false, nil
}

// heldNow tells what holds a promotion that is proposed already.
func (r *run) heldNow(s *state, res *Result) []string {
	apps := []string{r.id.App}
	if r.q.rules != nil {
		apps = r.q.rules.apps
	}
	var images []image.Reference
	for _, img := range res.Images {
		images = append(images, img.Reference)
	}
	now, _ := r.TimeOf(r.repo)
	var told []string
	for _, g := range held(s.holds, r.id.Environment, apps, now, images) {
		told = append(told, oneLine(g.Evidence))
	}
	return told
}

// shut says in one sentence which gates stop a promotion; "" where none does.
func shut(gates []Gate) string {
	var why []string
	for _, g := range gates {
		if !g.opens() {
			why = append(why, g.Name+": "+oneLine(g.Evidence))
		}
	}
	return strings.Join(why, "; ")
}

// waits says whether time alone may open what blocks a promotion.
func (r Result) waits() bool {
	return r.Outcome == Blocked && !slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Status == GateFailed })
}
