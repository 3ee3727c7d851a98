package promote

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"tagboat/record"
	"tagboat/scm"
)

// place decides what a hold does to what is there.
func (w *holding) place(holds Holds) (*holdChange, error) {
	now, whose := w.TimeOf(w.repo)
	if err := w.date(now, whose); err != nil {
		return nil, err
	}
	if err := w.want.Check(); err != nil {
		return nil, fmt.Errorf("%w: hold %s: %w", ErrMisused, w.want.Target(), err)
	}
	file := w.want.Path()
	there, reads := holds.find(file)
	if w.landed(holds.bytes[file], holds.tip) {
		return nil, nil
	}
	change := &holdChange{file: scm.File{Path: file, Old: holds.bytes[file], New: w.want.Bytes()}, outcome: HoldPlaced}
	change.message = holdMessage("Hold", w.want, w.want, nil)
	switch {
	case there == nil, reads && there.Passed(now):
		return change, w.seen(change.file.Old)
	case reads && sameHold(*there, w.want) && there.Until.Equal(w.want.Until):
		w.want, w.res.Outcome = *there, HoldUnchanged
		return nil, nil
	case reads && sameHold(*there, w.want) && longer(there.Until, w.want.Until):
		w.want.Since = there.Since
		change.file.New = w.want.Bytes()
	case !w.o.Replace:
		return nil, fmt.Errorf("%w: %s: wait for its release, or put yours in its place with --replace", ErrHeld, there)
	case change.file.Old == nil:
		return nil, fmt.Errorf("%w: %s is no file on branch %s: delete it there", ErrHeld, file, record.HoldBranch)
	}
	change.outcome, change.replaced = HoldReplaced, there
	change.message = holdMessage("Hold", w.want, w.want, there)
	return change, w.seen(change.file.Old)
}

// date fills in since when and until when.
func (w *holding) date(now time.Time, whose string) error {
	if w.want.Since.IsZero() {
		w.want.Since = now
	}
	if w.o.For > 0 && w.want.Until.IsZero() {
		w.want.Until = now.Add(w.o.For)
	}
	w.want.Since, w.want.Until = whole(w.want.Since), whole(w.want.Until)
	if w.want.Passed(now) {
		return fmt.Errorf("%w: until %s is past: it is %s %s", ErrMisused, w.want.Until.Format(time.RFC3339), now.UTC().Format(time.RFC3339), whose)
	}
	return nil
}

// whole is a time as a hold file has it.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// sameHold says whether two holds are one holder's for one reason.
func sameHold(a, b record.Hold) bool {
	return a.Who() == b.Who() && a.Reason == b.Reason && slices.Equal(a.Allow, b.Allow)
}

// longer says whether a hold until b outlasts one until a.
func longer(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || b.After(a)) }

// landed says whether an earlier attempt's file is there: a forge that only
// appends may have taken it although the branch had moved.
func (w *holding) landed(now []byte, tip *scm.Tip) bool {
	if !w.sent || tip == nil || w.wrote == nil || !bytes.Equal(now, w.wrote) {
		return false
	}
	w.res.Outcome, w.res.Commit = HoldPlaced, &tip.Commit
	if w.first != nil {
		w.res.Outcome = HoldReplaced
	}
	return true
}

// seen demands that the file is what the first attempt saw: what somebody has put
// there meanwhile was never meant to be replaced.
func (w *holding) seen(now []byte) error {
	if !w.read {
		w.read, w.first = true, now
		return nil
	}
	if now != nil && !bytes.Equal(w.first, now) {
		return fmt.Errorf("%w: the hold of %s became another meanwhile: look with tagboat holds, and run again", ErrHeld, w.want.Target())
	}
	return nil
}

// release decides what to take away.
func (w *holding) release(holds Holds) (*holdChange, error) {
	if strings.Contains(w.want.Environment+w.want.App, "/") {
		return nil, fmt.Errorf("%w: release %s: a name with '/' is no environment's or app's", ErrMisused, w.want.Target())
	}
	if err := record.CheckReason(w.want.Reason); err != nil {
		return nil, fmt.Errorf("%w: release %s: %w", ErrMisused, w.want.Target(), err)
	}
	file := w.want.Path()
	there, reads := holds.find(file)
	old := holds.bytes[file]
	w.still(holds)
	switch {
	case there == nil && w.sent:
		w.res.Outcome = HoldReleased
		return nil, nil
	case there == nil:
		w.res.Outcome = HoldNone
		return nil, nil
	case old == nil:
		return nil, fmt.Errorf("%w: %s is no file on branch %s: delete it there", ErrHeld, file, record.HoldBranch)
	}
	if err := w.seen(old); err != nil {
		return nil, err
	}
	if !reads {
		w.res.Warnings = append(w.res.Warnings, there.Reason)
	}
	w.res.Hold = *there
	return &holdChange{
		file: scm.File{Path: file, Old: old}, outcome: HoldReleased,
		message: holdMessage("Release", w.want, *there, nil),
	}, nil
}

// still warns of what the release leaves held: an environment beside its app, or
// apps beside their environment.
func (w *holding) still(holds Holds) {
	now, _ := w.TimeOf(w.repo)
	for _, hold := range holds.All {
		related := hold.App == "" || w.want.App == ""
		if hold.Environment == w.want.Environment && hold.App != w.want.App && related && !hold.Passed(now) {
			w.res.Warnings = append(w.res.Warnings, "still: "+hold.String())
		}
	}
}
