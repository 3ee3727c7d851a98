// Package record is what Tagboat leaves in git and reads back later: branch
// names, commit trailers, the pull request's marker and hold files. Writer and
// reader of each stand side by side, so that they cannot drift apart.
package record
