package github_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

// TestFortyPromotionsOfOneToken: forty apps are promoted side by side, each by a
// Repository of its own that shares the token's pace, and GitHub says once that it is
// too much.
func TestFortyPromotionsOfOneToken(t *testing.T) {
	const apps = 40
	files := map[string]string{}
	app := func(i int) string { return fmt.Sprintf("apps/app-%02d/kustomization.yaml", i) }
	for i := range apps {
		files[app(i)] = v1
	}
	synctest.Test(t, func(t *testing.T) {
		st := scmtest.NewStore("main", files)
		s := githubtest.New(t, st, githubtest.Options{InProcess: true, Delay: 100 * time.Millisecond})
		s.Fail("POST git/refs", 1, githubtest.Answer{Status: 403, Message: secondary, Header: map[string]string{"Retry-After": "60"}})
		pace, start := scm.NewPace(0), time.Now()
		var mu sync.Mutex
		var written []scm.Try
		var g sync.WaitGroup
		for i := range apps {
			o := options(s)
			o.Transport = scm.TransportOptions{Base: s.Transport(), Pace: pace, Rand: func() float64 { return 0 }, Observe: func(try scm.Try) {
				mu.Lock()
				defer mu.Unlock()
				if try.Write {
					written = append(written, try)
				}
			}}
			r, err := github.New(o)
			if err != nil {
				t.Fatal(err)
			}
			g.Go(func() { promoteApp(t, r, fmt.Sprintf("tagboat/staging/app-%02d", i), app(i)) })
		}
		g.Wait()
		if n := len(st.Pulls(func(p scmtest.Pull) bool { return p.State == "open" })); n != apps {
			t.Errorf("%d pull requests, want %d", n, apps)
		}
		if n := len(written); n > 4*apps+1 {
			t.Errorf("%d writes for %d apps, want four each at most, and one again", n, apps)
		}
		slices.SortFunc(written, func(a, b scm.Try) int { return a.Started.Compare(b.Started) })
		waits := 0
		for i := 1; i < len(written); i++ {
			before, now := written[i-1], written[i]
			if now.Started.Before(before.Ended) {
				t.Errorf("%s %s was sent while %s %s was under way", now.Method, now.Path, before.Method, before.Path)
			}
			if gap := now.Started.Sub(before.Started); i >= 10 && gap < time.Second {
				t.Errorf("write %d came %s after the one before", i+1, gap)
			} else if gap >= time.Minute {
				waits++
			}
		}
		if waits != 1 {
			t.Errorf("waited %d times for a minute, want once", waits)
		}
		if took := time.Since(start); took > 4*time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

func promoteApp(t *testing.T, r *github.Repository, branch, file string) {
	base, err := r.Tip(t.Context(), "main")
	if err != nil {
		t.Error(err)
		return
	}
	c, err := r.Commit(t.Context(), scm.Draft{
		Branch: branch, From: base, Message: "Promote", Files: []scm.File{{Path: file, Old: []byte(v1), New: []byte(v2)}},
	})
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := r.Propose(t.Context(), scm.Proposal{Head: branch, Base: "main", HeadCommit: c.SHA, Title: "Promote", Body: "body"}); err != nil {
		t.Error(err)
	}
}
