package scm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
)

func TestLatest(t *testing.T) {
	s := func(context, word string) scm.Status { return scm.Status{Context: context, Word: word} }
	got := scm.Latest([]scm.Status{s("b", "1"), s("a", "1"), s("b", "2"), s("c", "1"), s("a", "2")}, func(s scm.Status) string { return s.Context })
	if d := cmp.Diff([]scm.Status{s("a", "2"), s("b", "2"), s("c", "1")}, got); d != "" {
		t.Errorf("latest (-want +got):\n%s", d)
	}
}

func TestApprovals(t *testing.T) {
	yes := func(user string) scm.Opinion {
		return scm.Opinion{Approval: scm.Approval{User: user}, Approves: true}
	}
	no := func(user string) scm.Opinion { return scm.Opinion{Approval: scm.Approval{User: user}} }
	dismissed := func(o scm.Opinion) scm.Opinion { o.Dismissed = true; return o }
	for name, c := range map[string]struct {
		opinions []scm.Opinion
		want     []scm.Approval
	}{
		"none":                       {},
		"the author's":               {opinions: []scm.Opinion{yes("Mei")}},
		"a ghost's":                  {opinions: []scm.Opinion{yes("")}},
		"one":                        {[]scm.Opinion{yes("anna")}, []scm.Approval{{User: "anna"}}},
		"twice, in two spellings":    {[]scm.Opinion{yes("anna"), yes("Anna")}, []scm.Approval{{User: "Anna"}}},
		"a no alone":                 {opinions: []scm.Opinion{no("anna")}},
		"yes, then no":               {[]scm.Opinion{yes("anna"), no("anna")}, []scm.Approval{{User: "anna", Dismissed: true}}},
		"yes, no, yes":               {[]scm.Opinion{yes("anna"), no("anna"), yes("anna")}, []scm.Approval{{User: "anna"}}},
		"yes, then a dismissed no":   {[]scm.Opinion{yes("anna"), dismissed(no("anna"))}, []scm.Approval{{User: "anna"}}},
		"dismissed":                  {[]scm.Opinion{dismissed(yes("anna"))}, []scm.Approval{{User: "anna", Dismissed: true}}},
		"another's no takes nothing": {[]scm.Opinion{yes("anna"), no("ida")}, []scm.Approval{{User: "anna"}}},
	} {
		if d := cmp.Diff(c.want, scm.Approvals(c.opinions, "mei")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestCounts(t *testing.T) {
	for a, want := range map[scm.Approval]bool{{}: true, {Dismissed: true}: false, {Stale: true}: false} {
		if a.Counts() != want {
			t.Errorf("%+v counts: %v", a, a.Counts())
		}
	}
}

func TestAllows(t *testing.T) {
	order := []scm.Permission{scm.PermissionNone, scm.PermissionRead, scm.PermissionWrite, scm.PermissionAdmin}
	for i, have := range order {
		for j, want := range order {
			if have.Allows(want) != (i >= j) {
				t.Errorf("%s allows %s: %v", have, want, have.Allows(want))
			}
		}
	}
	for _, p := range []scm.Permission{"", "owner"} {
		if p.Allows(scm.PermissionNone) || scm.PermissionAdmin.Allows(p) {
			t.Errorf("%q is compared", p)
		}
	}
}

func TestCutText(t *testing.T) {
	for text, want := range map[string]string{"": "", "üüü": "üüü", "üüüü": "üü…", "abcdef": "ab…"} {
		if got := scm.CutText(text, 3); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
