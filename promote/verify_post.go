package promote

import (
	"context"
	"fmt"
	"slices"

	"tagboat/scm"
)

// post sets the status where it says something else than the last one.
func (v *verifying) post(ctx context.Context, res *Verified, also string) error {
	evidence, ok := v.base.repo.(scm.Evidence)
	if !ok || v.q.DryRun {
		return nil
	}
	for _, commit := range slices.Compact([]string{v.pr.HeadCommit, also}) {
		if commit == "" {
			continue
		}
		posted, err := v.postAt(ctx, evidence, commit, res)
		if err != nil {
			return err
		}
		res.Posted = res.Posted || posted
	}
	return nil
}

func (v *verifying) postAt(ctx context.Context, evidence scm.Evidence, commit string, res *Verified) (posted bool, err error) {
	want := scm.Status{Context: PolicyContext, State: res.State, Description: scm.CutText(oneLine(res.Summary), descriptionLimit), URL: webURL(v.q.Job.RunURL)}
	have, err := evidence.Statuses(ctx, commit)
	if err != nil {
		return false, err
	}
	for _, s := range have {
		if s.Context == PolicyContext && s.State == want.State && s.Description == want.Description {
			return false, nil
		}
	}
	if err := evidence.SetStatus(ctx, commit, want); err != nil {
		return false, fmt.Errorf("post the status %s on %s: %w", PolicyContext, short(commit), err)
	}
	return true, nil
}

// descriptionLimit is what every forge takes (GitHub: 140 characters).
const descriptionLimit = 140
