package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"tagboat/config"
	"tagboat/record"
	"tagboat/scm"
)

// ErrHeld is returned where somebody else's hold stands already.
var ErrHeld = errors.New("held already")

// HoldOutcome says how holding or releasing ended.
type HoldOutcome string

// The outcomes of Hold and Release.
const (
	HoldPlaced    HoldOutcome = "held"      // the hold was placed
	HoldReplaced  HoldOutcome = "replaced"  // in the place of another, or prolonged
	HoldUnchanged HoldOutcome = "unchanged" // the very hold is there already
	HoldReleased  HoldOutcome = "released"
	HoldNone      HoldOutcome = "not-held" // there was nothing to release
	HoldPlanned   HoldOutcome = "planned"  // dry run: what would be committed
	HoldFailed    HoldOutcome = "failed"
)

// HoldOptions say who holds or releases, and how.
type HoldOptions struct {
	// Actor is the login, where the caller has it from the forge. "" asks the forge
	// whose token it is; then Job.Actor is noted as what it is, a job's word.
	Actor   string
	Job     Job
	For     time.Duration // how long from now on, instead of Until; 0 is not used
	Replace bool          // put the hold in the place of another
	DryRun  bool
}

// HoldResult is how Hold or Release ended.
type HoldResult struct {
	Outcome  HoldOutcome
	Hold     record.Hold  // the one that stands now or, released, stood
	Was      *record.Hold // what it replaced
	Commit   *scm.Commit  // on record.HoldBranch, where one was made
	Warnings []string
}

// ParseUntil reads until when somebody wants to hold: a time in RFC 3339, a date
// (when that day begins in UTC), or how long from now on; "" is until released.
func ParseUntil(text string) (until time.Time, length time.Duration, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, 0, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if until, err := time.Parse(layout, text); err == nil {
			return until, 0, nil
		}
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("%w: until %s: write a duration (2h, 3d), a date (2026-12-24) or a time with its zone (2026-12-24T18:00:00Z): %w", ErrMisused, text, err)
	}
	if d == 0 {
		return time.Time{}, 0, fmt.Errorf("%w: until %s: that is now", ErrMisused, text)
	}
	return time.Time{}, time.Duration(d), nil
}

// CheckHeld demands that tagboat.yaml on the default branch has the environment
// and the app ("" is all of them), and the app in the environment.
func (p *Promoter) CheckHeld(ctx context.Context, repo scm.Repository, environment, app string) error {
	tip, err := repo.Tip(ctx, "")
	if err != nil {
		return err
	}
	c, err := config.Load(repo.Files(ctx, tip.Commit.SHA))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s has no %s on %s: holds are of its environments and apps", ErrMisused, repo.About().Name, config.FileName, tip.Branch)
	}
	if err != nil {
		return fmt.Errorf("%s, branch %s: %w", repo.About().Name, tip.Branch, err)
	}
	if _, err := c.Environment(environment); err != nil {
		return fmt.Errorf("%w: %w", ErrMisused, err)
	}
	if app == "" {
		return nil
	}
	a, err := c.App(app)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMisused, err)
	}
	if !a.In(environment) {
		return fmt.Errorf("%w: %s is not in %s, by %s", ErrMisused, app, environment, config.FileName)
	}
	return nil
}

// Hold places a hold by compare and swap on the hold branch, which it makes where
// there is none. By and Since are filled in where they are empty. Another hold
// that stands there, also one that does not read, is ErrHeld unless o.Replace; the
// very same is no change, and its own holder may prolong it.
func (p *Promoter) Hold(ctx context.Context, repo scm.Repository, h record.Hold, o HoldOptions) (HoldResult, error) {
	w := &holding{Promoter: p, repo: repo, o: o, want: h, res: HoldResult{Outcome: HoldFailed}}
	err := w.identify(ctx)
	if err == nil {
		err = w.run(ctx, w.place)
	}
	w.res.Hold = w.want
	return w.res, err
}

// Release takes away the hold of h.Environment and h.App. h.By and h.Reason say
// who does it and why, for the history. Nothing to release is no error. A hold
// that somebody places meanwhile is not taken away.
func (p *Promoter) Release(ctx context.Context, repo scm.Repository, h record.Hold, o HoldOptions) (HoldResult, error) {
	w := &holding{Promoter: p, repo: repo, o: o, want: h, res: HoldResult{Outcome: HoldFailed, Hold: h}}
	err := w.identify(ctx)
	if err == nil {
		err = w.run(ctx, w.release)
	}
	return w.res, err
}

// holding is one hold or release over its attempts.
type holding struct {
	*Promoter
	repo scm.Repository
	o    HoldOptions
	want record.Hold
	res  HoldResult

	warnings []string // of no attempt

	read  bool   // an attempt has read the branch
	first []byte // the file as the first attempt read it; nil: there was none
	wrote []byte // what an attempt has sent; it may have landed although the branch moved
	sent  bool
}

// identify fills in who it is. Only what the forge itself says is taken for true;
// the rest is noted as told.
func (w *holding) identify(ctx context.Context) error {
	if w.want.By != "" {
		return nil
	}
	told := cut(oneLine(w.o.Job.Actor), actorLimit)
	rights, ok := w.repo.(scm.Rights)
	switch {
	case w.o.Actor != "":
		w.want.By = w.o.Actor
		return nil
	case !ok:
		w.asTold(told, "as told: git vouches for nobody")
		return nil
	}
	login, err := rights.Self(ctx)
	switch {
	case errors.Is(err, scm.ErrDenied), errors.Is(err, scm.ErrUnsupported):
		w.asTold(told, "as told: the forge does not say whose token it is")
		w.warnings = append(w.warnings, fmt.Sprintf("who it is stands there only as told: %v", err))
	case err != nil:
		return fmt.Errorf("ask %s who the token acts as: %w", w.repo.About().Host, err)
	default:
		w.want.By = login
		if told != "" && !strings.EqualFold(told, login) {
			w.want.Note = "for " + told + ", as told"
		}
	}
	return nil
}

// actorLimit leaves room for the words of a note around a name.
const actorLimit = 100

func (w *holding) asTold(who, note string) {
	w.want.By, w.want.Note = who, note
	if who == "" {
		w.want.By = "somebody"
	}
}

// holdChange is one commit on the hold branch.
type holdChange struct {
	file     scm.File
	message  string
	outcome  HoldOutcome
	replaced *record.Hold
}

// run reads, decides and commits until nothing moves in between. A decision of nil
// has set the outcome.
func (w *holding) run(ctx context.Context, decide func(Holds) (*holdChange, error)) error {
	var err error
	for n := range attempts {
		if n > 0 {
			w.progress("the holds moved; reading again")
			if err := w.sleep(ctx, backoff(n)); err != nil {
				return err
			}
		}
		w.res.Warnings = slices.Clone(w.warnings)
		holds, readErr := w.Holds(ctx, w.repo)
		if readErr != nil {
			return readErr
		}
		change, decided := decide(holds)
		if decided != nil || change == nil {
			return decided
		}
		w.res.Was = change.replaced
		if w.o.DryRun {
			w.res.Outcome = HoldPlanned
			return nil
		}
		var commit scm.Commit
		w.sent, w.wrote = true, change.file.New
		if commit, err = w.commit(ctx, holds, change); err == nil {
			w.res.Outcome, w.res.Commit = change.outcome, &commit
			return nil
		}
		if !moved(err) {
			return err
		}
	}
	return errors.Join(ErrContended, err)
}

// commit publishes a change. Without a hold branch one is made off the default
// branch, for every forge can do that; what lies in the way of holds there is left
// out of it.
func (w *holding) commit(ctx context.Context, holds Holds, change *holdChange) (scm.Commit, error) {
	w.progress(fmt.Sprintf("committing to %s of %s", record.HoldBranch, w.repo.About().Name))
	d := scm.Draft{Branch: record.HoldBranch, Message: change.message, Files: []scm.File{change.file}}
	if holds.tip != nil {
		d.Expect, d.From, d.OnHead = holds.tip.Commit.SHA, *holds.tip, d.Files
		return w.repo.Commit(ctx, d)
	}
	var err error
	if d.From, err = w.repo.Tip(ctx, ""); err != nil {
		return scm.Commit{}, err
	}
	old, err := readTree(w.repo.Files(ctx, d.From.Commit.SHA), record.HoldDir)
	if err != nil {
		return scm.Commit{}, err
	}
	for _, f := range old {
		switch {
		case f.odd:
			return scm.Commit{}, fmt.Errorf("%w: make branch %s: %s on %s is no file: make the branch by hand, without %s", ErrMisused, record.HoldBranch, f.path, d.From.Branch, record.HoldDir)
		case f.path == change.file.Path:
			d.Files[0].Old = f.bytes
		default:
			d.Files = append(d.Files, scm.File{Path: f.path, Old: f.bytes})
		}
	}
	return w.repo.Commit(ctx, d)
}

// holdMessage is the commit that holds or releases: the history of the branch is
// the record of who did what, and why. What people wrote is one line: it was
// checked when it was read or given.
func holdMessage(verb string, by, hold record.Hold, replaced *record.Hold) string {
	var b strings.Builder
	subject := verb + " " + hold.Target()
	if by.Reason != "" {
		subject += ": " + by.Reason
	}
	b.WriteString(cut(subject, 100) + "\n\n")
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, value)
		}
	}
	line("Tagboat-"+verb, strings.TrimSuffix(strings.TrimPrefix(hold.Path(), record.HoldDir+"/"), ".yaml"))
	line("Tagboat-By", by.Who())
	line("Tagboat-Reason", by.Reason)
	if verb == "Hold" && !hold.Until.IsZero() {
		line("Tagboat-Until", hold.Until.UTC().Format(time.RFC3339))
	}
	if verb == "Release" {
		line("Tagboat-Released", hold.String())
	}
	if replaced != nil {
		line("Tagboat-Replaced", replaced.String())
	}
	return b.String()
}
