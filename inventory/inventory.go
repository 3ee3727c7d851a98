// Package inventory is the reading side of history: what runs where, since when,
// by which commit and pull request, and what was said of it since.
//
// The history of a branch is its first-parent line: what the branch was after
// each merge and push. The commits of a merged branch are not states of it. Time
// is the forge's, never a committer's, who may write what they like.
package inventory

import (
	"errors"
	"fmt"
	"time"

	"tagboat/config"
	"tagboat/image"
	"tagboat/record"
	"tagboat/scm"
)

// The answers that a caller tells apart.
var (
	// ErrDisagree is returned where directories do not run one pinned digest of an
	// image.
	ErrDisagree = errors.New("not one pinned digest")
	// ErrUnpinned is the ErrDisagree of an entry that has no digest.
	ErrUnpinned = fmt.Errorf("%w: a tag without a digest may be another image tomorrow", ErrDisagree)
	// ErrUntold is returned where the forge cannot tell what is asked: plain git
	// knows no time and no statuses, and a forge may have no record of a commit.
	// It is no answer and no pass.
	ErrUntold = errors.New("the forge cannot tell")
	// ErrTooLong is returned where a history goes on beyond what is looked at.
	ErrTooLong = errors.New("the history is longer than what is looked at")
)

// Target is one place: what an app runs in an environment or ring.
type Target struct {
	Repo   scm.Repository
	Branch string   // by name; not "" where a time is asked for
	Dirs   []string // as config.Targets gives them
	Images []config.Image

	// Enough is as far back as Arrived needs to look; zero is all the way. A stay
	// that began before it is told as Earlier.
	Enough time.Time
	// Line shares what was read of the branch between targets and calls; nil reads
	// anew. It must be of Repo and of the tip that is asked for.
	Line *Line
}

// Arrival is the beginning of a stay: the commit of the branch's first-parent line
// from which on the images ran.
type Arrival struct {
	Commit scm.Commit
	// At is when the branch came to hold the images, by the forge's clock. Where
	// the forge has no record of the commit itself, it is that of the next commit
	// after it, so that it is never too early.
	At          time.Time
	PullRequest *scm.PullRequest // that brought it; nil where none did
	Trailers    record.Trailers  // zero where no commit says
	Images      []image.Reference
	// Earlier: the looking ended here, and the images may have run before. Then the
	// commit is not what brought them, and there is no pull request.
	Earlier bool
	// Problem says why a state of History tells no images: ErrDisagree,
	// overlay.ErrNoEntry, overlay.ErrNoKustomization, overlay.ErrUnsafe.
	Problem error
}
