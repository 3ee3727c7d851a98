package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tagboat/inventory"
	"tagboat/scm/scmtest"
)

// person makes random histories: pushes, merges of all kinds, reverts, and branches
// that keep their own files.
type person struct {
	*world
	*rand.Rand
	n        int
	branches []string
	moves    map[string]move // of main, by the commit that it came to
}

// move is when main came to a commit: between two looks at the clock.
type move struct{ from, to time.Time }

// act does one thing and notes where main is.
func (p *person) act() {
	p.n++
	from := p.store.Now()
	p.do()
	if _, known := p.moves[p.tip()]; !known {
		p.moves[p.tip()] = move{from, p.store.Now()}
	}
}

func (p *person) do() {
	branch := "main"
	if len(p.branches) > 0 && p.IntN(2) == 0 {
		branch = p.branches[p.IntN(len(p.branches))]
	}
	switch p.IntN(9) {
	case 0, 1:
		p.change(branch)
	case 2:
		p.push(branch, "other-"+branch, fmt.Sprint(p.n))
	case 3, 4:
		name := fmt.Sprintf("side-%d", p.n)
		p.branches = append(p.branches, name)
		at := p.tip()
		for range p.IntN(3) {
			if c, _ := p.store.Commit(at); len(c.Parents) > 0 {
				at = c.Parents[p.IntN(len(c.Parents))]
			}
		}
		if err := p.store.CreateBranch(name, at); err != nil {
			p.Fatal(err)
		}
		p.change(name)
	case 5:
		if branch != "main" {
			p.keep(branch)
		}
	case 6:
		if branch != "main" {
			p.tolerate(p.store.MergeBranch(branch, "main"))
		}
	case 7:
		p.tolerate(p.store.Revert("main", p.tip()))
	case 8:
		if branch != "main" {
			p.propose(branch)
		}
	}
}

func (p *person) change(branch string) {
	letter := string("abc"[p.IntN(3)])
	content := pinned(letter)
	switch p.IntN(6) {
	case 0:
		content = tagged(letter, fmt.Sprint("t", p.n))
	case 1:
		content = fmt.Sprintf("namePrefix: p%d-\n%s", p.n, content)
	case 2:
		content = fmt.Sprintf("images:\n- name: %s\n  newTag: t%d\n", repo, p.n)
	}
	p.push(branch, file, content)
}

// propose merges by pull request, where it does not conflict.
func (p *person) propose(branch string) {
	pull, err := p.store.OpenPull(scmtest.NewPull{Head: branch, Base: "main", Title: branch, Author: "mei"})
	if err == nil {
		_, err = p.store.MergePullRequest(pull.Number, []string{"merge", "squash", "rebase"}[p.IntN(3)])
	}
	p.tolerate("", err)
}

func (p *person) tolerate(_ string, err error) {
	for _, known := range []error{scmtest.ErrConflict, scmtest.ErrNoCommits, scmtest.ErrPullExists, scmtest.ErrNoObject} {
		if errors.Is(err, known) {
			return
		}
	}
	if err != nil {
		p.Fatal(err)
	}
}

// line is the first-parent line of main, newest first, read from git's objects.
func (p *person) line() []string {
	var line []string
	for at := p.tip(); ; {
		line = append(line, at)
		c, ok := p.store.Commit(at)
		if !ok {
			p.Fatal(at)
		}
		if len(c.Parents) == 0 {
			return line
		}
		at = c.Parents[0]
	}
}

// runs is the digest that a commit has in the file, read without overlay.
func (p *person) runs(sha string) string {
	content, _, err := p.store.ReadFile(sha, file)
	if err != nil {
		p.Fatal(err)
	}
	_, after, _ := strings.Cut(string(content), "digest: ")
	return strings.TrimSpace(after)
}

// TestArrivedByHand holds Arrived and History against a walk over all states of
// main, in random histories.
func TestArrivedByHand(t *testing.T) {
	names := []string{"gitea", "gitlab", "gitea", "gitlab", "github"}
	arrived, left := 0, 0
	for seed := range uint64(20) {
		w := newWorld(t, forges()[names[seed%5]])
		p := &person{world: w, Rand: rand.New(rand.NewPCG(seed, 1)), moves: map[string]move{}}
		for range 40 {
			p.act()
		}
		target := w.target()
		if seed%3 == 0 {
			target.Line = inventory.NewLine(target.Repo, p.tip())
		}
		line := p.line()
		checkHistory(p, target, line)
		got, err := inventory.Arrived(context.Background(), target, p.tip())
		if p.runs(p.tip()) == "" {
			left++
			if !errors.Is(err, inventory.ErrUnpinned) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		arrived++
		i := 0
		for i+1 < len(line) && p.runs(line[i+1]) == p.runs(line[0]) {
			i++
		}
		if err != nil || got.Commit.SHA != line[i] {
			t.Fatalf("seed %d: arrived at %s, want place %d, %s: %v", seed, got.Commit.SHA, i, line[i], err)
		}
		if m := p.visible(line[:i+1]); got.At.Before(m.from) || got.At.After(m.to) {
			t.Fatalf("seed %d: at %v, the branch came there between %v and %v", seed, got.At, m.from, m.to)
		}
	}
	t.Logf("%d arrivals, %d unpinned", arrived, left)
	if arrived < 8 {
		t.Error("too few arrivals to say anything")
	}
}

// visible is when main came to have the last commit of a line: with the move to it,
// or to the next newer one that main ever was at.
func (p *person) visible(line []string) move {
	for _, sha := range slices.Backward(line) {
		if m, ok := p.moves[sha]; ok {
			return m
		}
	}
	return move{}
}

func checkHistory(p *person, target inventory.Target, line []string) {
	p.Helper()
	var want, got []string
	for i, sha := range line {
		if i+1 == len(line) || p.runs(sha) != p.runs(line[i+1]) || p.runs(sha) == "" && p.text(sha) != p.text(line[i+1]) {
			want = append(want, sha)
		}
	}
	for a, err := range inventory.History(context.Background(), target, p.tip()) {
		if err != nil {
			p.Fatal(err)
		}
		got = append(got, a.Commit.SHA)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Fatalf("history\n%v\nwant\n%v", got, want)
	}
}

func (p *person) text(sha string) string {
	content, _, err := p.store.ReadFile(sha, file)
	if err != nil {
		p.Fatal(err)
	}
	return string(content)
}
