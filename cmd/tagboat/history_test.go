package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/ci"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// audited is a stay about which everything is known.
func audited() stay {
	at := time.Date(2026, 3, 1, 10, 4, 0, 0, time.FixedZone("CET", 3600))
	return stay{
		Arrival: inventory.Arrival{
			Commit: scm.Commit{SHA: strings.Repeat("c", 40), Author: "mei\x1b[31m", Time: at}, At: at,
			PullRequest: &scm.PullRequest{Number: 12, URL: "https://github.example/acme/config/pull/12", Author: "tagboat[bot]", State: scm.Merged, Head: "tagboat/production/todo-api", Base: "main"},
			Trailers:    record.Trailers{Requester: "li", Revision: "abc", Undoes: "def", Reason: "errors", Override: "incident 12", OverriddenBy: "ann"},
			Images:      []image.Reference{{Repository: "ghcr.io/acme/todo-api", Tag: "v1", Digest: "sha256:" + strings.Repeat("a", 64)}},
		},
		approvals: []scm.Approval{{User: "mei", Time: at, Commit: "h"}, {User: "li", Stale: true}, {User: "ann", Dismissed: true}},
	}
}

// unknown is a stay of plain git, and of a tag alone.
func unknown() stay {
	return stay{Arrival: inventory.Arrival{
		Commit:  scm.Commit{SHA: strings.Repeat("d", 40), Author: "mei", Time: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)},
		Problem: fmt.Errorf("%w: x/kustomization.yaml:2", inventory.ErrUnpinned),
	}}
}

func TestPrintStay(t *testing.T) {
	var out bytes.Buffer
	tool := &tool{stdout: &out, redactor: ci.NewRedactor()}
	tool.printStay(audited())
	tool.printStay(unknown())
	want := `2026-03-01T09:04:00Z
  ran        ghcr.io/acme/todo-api v1
             sha256:` + strings.Repeat("a", 64) + `
  commit     ` + strings.Repeat("c", 40) + ` by mei?[31m
  by         https://github.example/acme/config/pull/12 of tagboat[bot]
  asked by   li
  approved   mei, li (of another state), ann (taken back)
  revision   abc
  undoes     def
  reason     errors
  override   incident 12 (ann)
time unknown (its committer wrote 2026-02-01T00:00:00Z)
  problem    not one pinned digest: a tag without a digest may be another image tomorrow: x/kustomization.yaml:2
  commit     ` + strings.Repeat("d", 40) + ` by mei
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestEventOf(t *testing.T) {
	b, err := json.Marshal([]event{eventOf(audited()), eventOf(unknown())})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"since":"2026-03-01T09:04:00Z"`, `"approvals":[{"by":"mei","at":"2026-03-01T09:04:00Z","commit":"h"},{"by":"li","stale":true},{"by":"ann","dismissed":true}]`,
		`"number":12`, `"requester":"li"`, `"overriddenBy":"ann"`, `"override":"incident 12"`, `"reason":"errors"`, `"undoes":"def"`,
		`{"commit":"` + strings.Repeat("d", 40) + `","images":[],"problem":{"code":"source-not-pinned",`, `"approvals":[]`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\nhas no %s", b, want)
		}
	}
}

func TestProblem(t *testing.T) {
	for want, err := range map[string]error{
		"not pinned": inventory.ErrUnpinned, "digests disagree": inventory.ErrDisagree, "time unknown": inventory.ErrUntold,
		"no-entry": overlay.ErrNoEntry, "forge-denied": scm.ErrDenied, "failed": fmt.Errorf("else"),
	} {
		if got := problem(fmt.Errorf("read: %w", err)); got != want {
			t.Errorf("problem(%v) = %q, want %q", err, got, want)
		}
	}
}
