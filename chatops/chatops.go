// Package chatops turns one line that a person wrote (a comment, a chat message)
// into a promotion: the grammar, what an event and a signature are worth, who may
// ask, and the answer.
//
// It checks out nothing and runs nothing that a comment says. A line is parsed
// into a Command, its names are looked up in tagboat.yaml, its author's rights are
// asked from the forge, and what is promoted is bound to commits and digests.
package chatops
