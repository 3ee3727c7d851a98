package scm

// ComparedCommits is how many commits of a Span are given at most.
const ComparedCommits = 100

// Comparison tells how a head stands to a base. Where neither has what the other
// has not, the two are one commit.
type Comparison struct {
	Ahead  Span // on head and not on base
	Behind Span // on base and not on head
}

// Span is a number of commits, and the newest of them.
type Span struct {
	Commits []Commit // newest first, merges included, at most ComparedCommits
	Count   int      // how many there are
	AtLeast bool     // there are more than Count: the forge does not tell how many
}
