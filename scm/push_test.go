package scm_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"tagboat/scm"
)

// history is a log, newest first, of "commit parent parent".
func history(lines ...string) func(string) iter.Seq2[scm.Commit, error] {
	return func(tip string) iter.Seq2[scm.Commit, error] {
		return func(yield func(scm.Commit, error) bool) {
			started := false
			for _, l := range lines {
				words := strings.Fields(l)
				if started = started || words[0] == tip; !started {
					continue
				}
				if !yield(scm.Commit{SHA: words[0], Parents: words[1:]}, nil) {
					return
				}
			}
		}
	}
}

func TestFindPush(t *testing.T) {
	line := history("d c", "c b", "b a", "a")
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	cases := []struct {
		name   string
		pushes []scm.Push // newest first
		log    func(string) iter.Seq2[scm.Commit, error]
		commit string
		want   int // 0: not found
		why    string
	}{
		{name: "the tip, without reading the log", pushes: []scm.Push{{"c", "d", at(4)}, {"b", "c", at(3)}}, commit: "d", want: 4,
			log: func(string) iter.Seq2[scm.Commit, error] { panic("read") }},
		{name: "further back", pushes: []scm.Push{{"c", "d", at(4)}, {"b", "c", at(3)}, {"a", "b", at(2)}}, commit: "b", want: 2},
		{name: "among several of one push", pushes: []scm.Push{{"a", "d", at(4)}, {"", "a", at(1)}}, commit: "b", want: 4},
		{name: "the last of several", pushes: []scm.Push{{"c", "d", at(4)}, {"a", "c", at(3)}, {"", "a", at(1)}}, commit: "c", want: 3},
		{name: "with a new branch", pushes: []scm.Push{{"c", "d", at(4)}, {"", "c", at(3)}}, commit: "a", want: 3},
		{name: "pushed away and back", commit: "c", want: 9,
			pushes: []scm.Push{{"b", "d", at(9)}, {"c", "b", at(8)}, {"b", "c", at(3)}, {"a", "b", at(2)}}},
		{name: "what another force push holds no more", commit: "b", want: 7,
			pushes: []scm.Push{{"x", "d", at(7)}, {"b", "x", at(6)}, {"a", "b", at(2)}}},
		{name: "the branch was deleted and made again", commit: "b", want: 9,
			pushes: []scm.Push{{"", "d", at(9)}, {"d", "", at(8)}, {"a", "d", at(3)}}},
		{name: "brought by a merge", log: history("m b t", "b a", "t a", "a"), commit: "t", want: 5,
			pushes: []scm.Push{{"b", "m", at(5)}, {"a", "b", at(2)}}},
		{name: "beside a merge", log: history("m b t", "b a", "t a", "a"), commit: "b", want: 2,
			pushes: []scm.Push{{"b", "m", at(5)}, {"a", "b", at(2)}}},
		{name: "older than any record", pushes: []scm.Push{{"c", "d", at(4)}, {"b", "c", at(3)}}, commit: "a", why: "none of the 2 pushes"},
		{name: "no record at all", commit: "a", why: "none of the 0 pushes"},
		{name: "not on the branch", pushes: []scm.Push{{"c", "d", at(4)}}, commit: "z", why: "does not lead to it"},
		{name: "the record is behind", pushes: []scm.Push{{"b", "c", at(3)}}, commit: "d", why: "does not lead to it"},
		{name: "deleted last", pushes: []scm.Push{{"d", "", at(8)}, {"c", "d", at(4)}}, commit: "d", why: "deleted"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.log == nil {
				c.log = line
			}
			got, err := scm.FindPush(c.commit, onePerPage(c.pushes), c.log)
			if c.want == 0 {
				if !errors.Is(err, scm.ErrNotFound) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v, %v, want not found: %s", got, err, c.why)
				}
				return
			}
			if err != nil || !got.Equal(at(c.want)) {
				t.Errorf("%v, %v, want %v", got, err, at(c.want))
			}
		})
	}
}

// onePerPage gives every push a page of its own.
func onePerPage(all []scm.Push) func(int) ([]scm.Push, bool, error) {
	return func(n int) ([]scm.Push, bool, error) {
		if len(all) == 0 {
			return nil, false, nil
		}
		return all[n-1 : n], n < len(all), nil
	}
}

func TestFindPushIsBounded(t *testing.T) {
	pages := 0
	endless := func(int) ([]scm.Push, bool, error) {
		pages++
		return []scm.Push{{Before: "b", After: "b"}}, true, nil
	}
	_, err := scm.FindPush("a", endless, history("b a", "a"))
	if !errors.Is(err, scm.ErrNotFound) || pages != 20 {
		t.Errorf("%v after %d pages, want not found after 20", err, pages)
	}

	commits := 0
	deep := func(string) iter.Seq2[scm.Commit, error] {
		return func(yield func(scm.Commit, error) bool) {
			for ; yield(scm.Commit{SHA: fmt.Sprint(commits)}, nil); commits++ {
			}
		}
	}
	_, err = scm.FindPush("a", endless, deep)
	if !errors.Is(err, scm.ErrNotFound) || commits != 999 {
		t.Errorf("%v after %d commits, want not found after 1000", err, commits+1)
	}

	broken := errors.New("broken")
	_, err = scm.FindPush("a", func(int) ([]scm.Push, bool, error) { return nil, true, broken }, deep)
	if !errors.Is(err, broken) {
		t.Errorf("%v, want what the page answered", err)
	}
	fails := func(string) iter.Seq2[scm.Commit, error] {
		return func(yield func(scm.Commit, error) bool) { yield(scm.Commit{}, broken) }
	}
	if _, err = scm.FindPush("a", endless, fails); !errors.Is(err, broken) {
		t.Errorf("%v, want what the log answered", err)
	}
}
