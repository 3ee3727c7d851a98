// Package scm is the contract with one code repository on a forge (or on any
// git remote), as a promotion needs it: read the files of a commit, publish one
// commit on a branch by compare and swap, keep one pull request.
//
// The folders below implement it: github, gitlab, gitea and plaingit. No type of
// a forge's SDK leaves its folder. Every call takes a context; every error names
// the repository, the object, the status and the cause, and never a credential.
package scm

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"time"
)

// The refusals that a caller tells apart. An implementation wraps them with the
// object, the forge's own words and the next step.
var (
	// ErrNotFound is returned when the forge says that a repository, branch,
	// commit or pull request is not there (or that the token cannot see it).
	// A missing file is fs.ErrNotExist instead.
	ErrNotFound = errors.New("not found")
	// ErrMoved is returned when a branch or a file is no longer what was read:
	// nothing was published, read again.
	ErrMoved = errors.New("moved")
	// ErrRefused is returned when a branch protection, rule set, push rule or
	// setting says no. The text says which.
	ErrRefused = errors.New("refused")
	// ErrDenied is returned when the credential is missing, wrong or lacks a right.
	ErrDenied = errors.New("access denied")
	// ErrRateLimited is returned when the forge asks to wait for longer than the
	// call may take.
	ErrRateLimited = errors.New("rate limited")
	// ErrUnavailable is returned when the forge cannot be reached or answers 5xx
	// until the budget is spent.
	ErrUnavailable = errors.New("unavailable")
	// ErrUnsupported is returned when the forge has no such thing (plain git has
	// no labels, an older Gitea no compare and swap).
	ErrUnsupported = errors.New("not supported")
)

// Repository is what every git remote can do. One value is one repository with
// one credential; it is safe for concurrent use.
type Repository interface {
	// About tells what the repository is. It makes no call.
	About() About

	// Tip reads the newest commit of a branch in one round; "" is the default
	// branch. A branch that is not there is ErrNotFound.
	Tip(ctx context.Context, branch string) (Tip, error)

	// Files is the tree at a commit SHA: lazy, cached per commit, safe for
	// concurrent use, bound to ctx. It implements fs.ReadFileFS, fs.ReadDirFS,
	// fs.StatFS, fs.ReadLinkFS and fs.GlobFS, passes fstest.TestFS, follows no
	// symlink, and says fs.ErrNotExist only when the forge said so.
	Files(ctx context.Context, commit string) fs.FS

	// Log yields the commits that lead to a commit, newest first, in pages that
	// are asked for only as they are consumed; with a path only those that
	// changed it. It follows no rename.
	Log(ctx context.Context, commit, path string) iter.Seq2[Commit, error]

	// Changes tells what head (a commit SHA) changes against its merge base with
	// base (a commit SHA): what a pull request of it would show.
	Changes(ctx context.Context, base, head string) (Changes, error)

	// Compare tells how head stands to base (commit SHAs) in at most six calls,
	// however many commits lie between. One that is not there is ErrNotFound, and so
	// are two without a common ancestor on GitHub and GitLab.
	Compare(ctx context.Context, base, head string) (Comparison, error)

	// Commit publishes one commit by compare and swap, as far as the forge has
	// it; see Draft. When it returns an error, the branch is as it was.
	Commit(ctx context.Context, d Draft) (Commit, error)

	// PullRequests lists those from branch head of this very repository into
	// branch base, newest first: all open ones, and the newest page of closed
	// ones. A fork's branch of the same name is nobody.
	//
	// With head "" it lists every open one into base, those of forks too (Fork tells
	// which), all pages, newest first. Plain git knows a proposal by its branch
	// alone: there that is ErrUnsupported.
	PullRequests(ctx context.Context, head, base string) ([]PullRequest, error)

	// Propose makes the pull request as p says: Number 0 opens one (or adopts an
	// open one that somebody else has opened meanwhile), else updates it. Labels,
	// reviewers, assignees and the dismissal of approvals are best effort: what
	// did not work is in Warnings. Auto-merge that was asked for and cannot be set
	// is an error, with the pull request returned beside it.
	Propose(ctx context.Context, p Proposal) (PullRequest, error)

	// Close closes a pull request without merging, saves pr.Title and pr.Body as
	// given, and leaves why as a comment. Its branch stays.
	Close(ctx context.Context, pr PullRequest, why string) error
}

// About is what can be said of a repository without a call.
type About struct {
	Forge           string   // github, gitlab, gitea or git
	Host            string   // host (and port) that the credential belongs to; "" for file://
	Name            string   // owner/name, group/sub/name, or the path of a plain repository
	URL             string   // for people and browsers; no credential in it
	CompareURL      string   // stands before BASE...HEAD in the address of the page that compares them; "" where there is none
	PullRequestWord string   // "pull request" or "merge request"
	PullRequestMark string   // "#" or "!": what stands before a number
	BodyLimit       int      // characters that a body may have
	TellsAutoMerge  bool     // PullRequests says whether auto-merge is set
	PullRequests    bool     // false: a proposal is a pushed branch (plain git)
	Warnings        []string // what is known of the credential's limits before any call
}

// Tip is a branch and its newest commit.
type Tip struct {
	Branch    string
	Commit    Commit
	Protected bool
}

// Commit is one commit. Parents may be nil where the answer did not carry them
// (then Log tells them).
type Commit struct {
	SHA     string
	Message string
	Author  string // name or login, for people; never an identity to decide on
	URL     string
	Parents []string
	Time    time.Time // the committer's, as written; never the forge's clock
}

// Changes is the net change of a head against its merge base.
type Changes struct {
	MergeBase string
	Paths     []string // every path that differs, old and new names of a rename both
	Commits   []Commit // on head and not on base, newest first, merges included
}

// Draft says what Commit publishes: Branch moves from Expect to one new commit.
//
// Where the forge can, the new commit's only parent is From.Commit and its tree
// is From's with Files applied. Where the forge only appends (GitLab, Gitea
// before 1.26), a branch that exists gets a commit with OnHead applied to Expect
// instead, unless Rebuild is set.
type Draft struct {
	Branch  string
	Expect  string // the branch's commit that was read; "": the branch must not exist
	From    Tip    // the base branch as read
	Message string
	Files   []File // against From.Commit
	OnHead  []File // the same change against Expect; nil for a new branch
	Rebuild bool   // the branch must be rebuilt on From even where that needs force
	// Disarm is the open pull request of the branch, where what it shows changes:
	// its auto-merge, given for something else, is cleared before the branch moves,
	// as far as the forge tells of it.
	Disarm *PullRequest
	// Unwatched: no open pull request is from the branch, so that a forge that
	// cannot rebuild it may delete it and make it again.
	Unwatched bool
}

// File is one changed file. Old is what was read, byte for byte: a forge whose
// file is something else answers ErrMoved. Nil Old: the file must not exist.
// Nil New: delete. The file's mode is kept.
type File struct {
	Path     string
	Old, New []byte
}

// State of a pull request.
type State string

// The states of a pull request. Closed means closed without a merge.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// PullRequest is a pull request as the forge tells it; on plain git (Number 0)
// a pushed branch that is not in the base.
type PullRequest struct {
	Number      int
	ID          string // the forge's own; opaque, may be empty
	URL         string
	Head, Base  string // branch names
	Fork        bool   // Head is a branch of another repository
	HeadCommit  string // SHA of the head, also of a closed one whose branch is gone
	Title, Body string
	Author      string // login
	State       State
	Draft       bool
	AutoMerge   bool
	MergeCommit string // SHA on the base branch, if merged and told
	UpdatedAt   time.Time
	MergedAt    time.Time // the forge's clock, if merged
	Labels      []string  // sorted; of what Propose gives, perhaps without those that it has just set
	Warnings    []string  // what Propose could not do
}

// Proposal is the wanted state of a pull request.
type Proposal struct {
	Number     int // 0 opens or adopts
	Head, Base string
	HeadCommit string // auto-merge is bound to it
	Title      string
	Body       string

	Labels        []string
	Reviewers     []string // logins
	TeamReviewers []string // slugs
	Assignees     []string
	Draft         bool // on opening only
	AutoMerge     bool

	// Was is the pull request that Number names, as it was read. One that is not open
	// any more when it is updated keeps the title and body that it had, and the
	// answer is ErrMoved.
	Was *PullRequest

	// Renewed: what is proposed is another digest than before. Auto-merge is
	// cleared (unless asked for again) and approvals are dismissed where the forge
	// lets us; where not, a warning says so.
	Renewed bool
}
