package scm

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Evidence is what a forge knows of a commit and of a pull request beyond the git
// objects. Plain git has none of it, so a user asserts a Repository for Evidence;
// one that does not implement it cannot be asked, which is no answer and no pass.
//
// All methods tell only what the forge said. What the forge did not mention is
// absent from the answer; that missing is pending is the caller's rule.
type Evidence interface {
	// Statuses are the commit statuses and check runs of a commit (a full SHA),
	// all pages, the latest of each context, sorted by context. One context may be
	// there several times: a commit status and a check run of that name, or the
	// check runs of two apps. A commit that is not there is ErrNotFound; one
	// without any status is an empty list.
	Statuses(ctx context.Context, commit string) ([]Status, error)

	// Merged is the pull request that brought a commit (a full SHA) to its base
	// branch, with MergedAt of the forge's clock. ErrNotFound where none did: it
	// was pushed, or its pull request is still open. Where several did, to several
	// branches, it is the one that made this very commit, else the one that was
	// merged last: look at its Base.
	//
	// Gitea and Forgejo know the merged commit alone (a merge, a squash, the last
	// commit of a rebase or fast forward), not the other commits of the branch. On
	// a base branch's first-parent history only the earlier commits of a rebase or
	// fast forward are missing so; Pushed tells when those came.
	Merged(ctx context.Context, commit string) (PullRequest, error)

	// Pushed is when the forge saw a branch move to a commit (a full SHA), by the
	// forge's clock: by a push, a commit through its API or a merge. One that came
	// among others of one push has that push's time; one that was forced away and
	// came back has the time at which it came back. ErrNotFound, with the reason,
	// where the forge has no record of it, keeps none for so long, or it lies
	// further back than is read: that is no answer, and no "never".
	//
	// GitLab drops events after three years and keeps none of the single branches
	// where more than three were pushed at once. Gitea and Forgejo write the record
	// a moment after the push (until then the branch is told as it was before), have
	// its time as the push's, may have it cleaned up, and show what a user did whose
	// activity is private to administrators alone.
	Pushed(ctx context.Context, branch, commit string) (time.Time, error)

	// Approvals are the approvals of a pull request, oldest first: of each
	// reviewer the last one, also one that was taken back or is of an older head
	// (both marked). Its author's is never among them. Of pr, Number, Author and
	// HeadCommit are used, as PullRequests or Merged gave them. A pull request
	// that is not there is ErrNotFound.
	Approvals(ctx context.Context, pr PullRequest) ([]Approval, error)

	// SetStatus posts s as a commit status of a commit (a full SHA). Context, State,
	// Description and URL are sent, Creator, Time and Word are the forge's. A
	// description that is too long for the forge is cut at a character. Statuses
	// are kept forever, and GitHub takes a thousand per commit and context: post
	// what changed. A commit that is not there is ErrNotFound.
	SetStatus(ctx context.Context, commit string, s Status) error
}

// StatusState is what a status says.
type StatusState string

// The states of a status. Only the forge's own success is StatusSuccess. What
// failed, errored, was cancelled, timed out or wants an action is StatusFailure.
// All else is StatusPending, also what was skipped or is neutral, for it did not
// say yes; Word tells which.
const (
	StatusPending StatusState = "pending"
	StatusSuccess StatusState = "success"
	StatusFailure StatusState = "failure"
)

// Status is one commit status or check run.
type Status struct {
	Context     string // of a check run: its name
	State       StatusState
	Word        string // the forge's own word for the state: "skipped", "timed_out", "manual"
	Description string
	URL         string // for people; as its creator gave it
	Creator     string // login; of a check run the slug of its app
	// Time is when it came to this state by the forge's clock. GitHub tells of a
	// check run only the times that its app gave.
	Time time.Time
}

// Approval is one reviewer's approval.
type Approval struct {
	// User is the reviewer's login. On a public repository anybody may approve:
	// ask Rights whether this one's approval counts.
	User string
	// Commit is the head that was approved. "" where the forge does not tell.
	Commit string
	Time   time.Time // the forge's; zero where it does not tell
	// Dismissed: it was dismissed, or its giver asked for changes since.
	Dismissed bool
	// Stale: it was given to another head than pr.HeadCommit, or that it was given
	// to this one cannot be told.
	Stale bool
}

// Counts tells that the approval stands and is for the head commit.
func (a Approval) Counts() bool { return !a.Dismissed && !a.Stale }

// Latest keeps the last of each key of a list that is in the order of time,
// oldest first, sorted by SortStatuses. It is for implementations of Evidence.
func Latest(oldestFirst []Status, key func(Status) string) []Status {
	seen := map[string]bool{}
	var list []Status
	for _, s := range slices.Backward(oldestFirst) {
		if k := key(s); !seen[k] {
			seen[k] = true
			list = append(list, s)
		}
	}
	SortStatuses(list)
	return list
}

// SortStatuses sorts by context, then creator.
func SortStatuses(list []Status) {
	slices.SortStableFunc(list, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Context, b.Context), strings.Compare(a.Creator, b.Creator))
	})
}

// Opinion is one review that says yes, no, or was dismissed.
type Opinion struct {
	Approval
	Approves bool // false: it asks for changes
}

// Approvals keeps of each reviewer but the author the last opinion of a list that
// is in the order of time, oldest first, where a no after a yes takes the yes
// back. It is for implementations of Evidence.
func Approvals(oldestFirst []Opinion, author string) []Approval {
	var list []Approval
	for _, o := range oldestFirst {
		if o.User == "" || strings.EqualFold(o.User, author) {
			continue
		}
		i := slices.IndexFunc(list, func(a Approval) bool { return strings.EqualFold(a.User, o.User) })
		switch {
		case o.Approves && i >= 0:
			list = append(slices.Delete(list, i, i+1), o.Approval)
		case o.Approves:
			list = append(list, o.Approval)
		case i >= 0 && !o.Dismissed:
			list[i].Dismissed = true
		}
	}
	return list
}

// CutText cuts text at a character so that it has at most limit characters.
func CutText(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}
