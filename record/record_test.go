package record

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func full() Trailers {
	return Trailers{
		App: "todo-api", Environment: "production", Ring: "canary", Base: "main",
		Paths: []string{"apps/todo/overlays/a b", "apps/todo/overlays/é"},
		Edits: []Edit{
			{File: "overlays/staging/kustomization.yaml", Entry: "todo-api", Image: image.Reference{Repository: "ghcr.io/acme/todo-api", Tag: "v2", Digest: digest}},
			{File: "a b/kustomization.yaml", Entry: `PROJECT "x" \ IMAGE`, Image: image.Reference{Repository: "localhost:5000/web", Digest: digest}, Rename: true, Add: true, DigestOnly: true},
		},
		Revision: "0123abc", Requester: "mei (run 12)\nTagboat-App: forged",
	}
}

func TestTrailersRoundTrip(t *testing.T) {
	want := full()
	got, ok := ParseTrailers("Promote todo-api\n\nBody: text\n\n" + want.String() + "\nCo-authored-by: someone\n")
	if !ok {
		t.Fatalf("no trailers in\n%s", want)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if n := strings.Count(want.String(), "\nTagboat-App"); n != 0 {
		t.Errorf("a requester's line break made %d trailers of its own", n)
	}
}

func TestTrailersAreInert(t *testing.T) {
	for reason, want := range map[string]string{
		"fixes #12":            `"fixes \x2312"`,
		"closes acme/todo#12!": `"closes acme/todo\x2312!"`,
		"#12":                  `"\x2312"`,
		"fixes GH-12":          `"fixes \x47H-12"`,
		"resolves https://forge.example/acme/todo/issues/12": `"resolves https\x3a//forge.example/acme/todo/issues/12"`,
		"fixes GL-12, resolves OPS-12":                       `"fixes \x47L-12, resolves \x4fPS-12"`,
		"closes [issue:12]":                                  `"closes \x5bissue:12]"`,
		"UTF-8":                                              "UTF-8",
		"ask @mei, @@li":                                     `"ask \x40mei, @\x40li"`,
		"\\#1":                                               `"\\\x231"`,
		"維護 C# at 10:00":                                     `"維護 C# at 10:00"`,
	} {
		made := Trailers{App: "a", Environment: "b", Reason: reason}
		if !strings.Contains(made.String(), "\nTagboat-Reason: "+want+"\n") {
			t.Errorf("%s: want %s in\n%s", reason, want, made)
		}
		if got, ok := ParseTrailers("x\n\n" + made.String()); !ok || got.Reason != reason {
			t.Errorf("%s: read %q, %v", reason, got.Reason, ok)
		}
	}
}

func TestParseTrailersRefuses(t *testing.T) {
	for name, message := range map[string]string{
		"none":           "Fix typo\n\nSigned-off-by: x",
		"no environment": "x\n\nTagboat-App: a\n",
		"edit of two":    "x\n\nTagboat-App: a\nTagboat-Environment: b\nTagboat-Edit: file entry\n",
		"bad digest":     "x\n\nTagboat-App: a\nTagboat-Environment: b\nTagboat-Edit: f e img@sha256:12\n",
		"unknown word":   "x\n\nTagboat-App: a\nTagboat-Environment: b\nTagboat-Edit: f e img:v1 twice\n",
		"open quote":     "x\n\nTagboat-App: a\nTagboat-Environment: b\nTagboat-Edit: \"f e img:v1\n",
	} {
		if got, ok := ParseTrailers(message); ok {
			t.Errorf("%s: read %+v", name, got)
		}
	}
}

func TestSameTarget(t *testing.T) {
	a := full()
	b := full()
	b.Paths = b.Paths[:1]
	if !a.SameTarget(b) {
		t.Error("one common path is the same target")
	}
	b.Paths = []string{"elsewhere"}
	if a.SameTarget(b) {
		t.Error("no common path is another target")
	}
	b = full()
	b.Ring = ""
	if a.SameTarget(b) {
		t.Error("another ring is another target")
	}
}

func TestBranch(t *testing.T) {
	for _, c := range []struct{ environment, ring, app, want string }{
		{"staging", "", "todo-api", "tagboat/staging/todo-api"},
		{"production", "canary", "a.b_c", "tagboat/production.canary/a.b_c"},
	} {
		got, err := Branch(c.environment, c.ring, c.app)
		if err != nil || got != c.want {
			t.Errorf("Branch(%v) = %q, %v", c, got, err)
		}
	}
	for _, c := range []struct{ environment, ring, app string }{
		{"", "", "a"}, {"Staging", "", "a"}, {"a/b", "", "a"}, {"a", "x.y", "a"}, {"a", "", "a..b"}, {"a", "", "a.lock"},
		{"a", "", ".a"}, {"a", "", "a."}, {"a", "", "a b"}, {"a", "", strings.Repeat("a", 100)}, {"..", "", "a"}, {"-a", "", "a"},
	} {
		if got, err := Branch(c.environment, c.ring, c.app); err == nil {
			t.Errorf("Branch(%v) = %q, want an error", c, got)
		}
	}
}

func TestMarker(t *testing.T) {
	m := Marker{App: "todo-api", Environment: "staging", Content: Content(full().Edits)}
	body := "text <!-- tagboat: broken\n\n" + m.String() + "\n"
	got, ok := ParseMarker(body)
	if !ok || got != m {
		t.Errorf("ParseMarker = %+v, %v", got, ok)
	}
	m.Superseded = true
	if got, ok = ParseMarker(ReplaceMarker(body, m)); !ok || !got.Superseded {
		t.Errorf("after ReplaceMarker: %+v, %v", got, ok)
	}
	if got, ok = ParseMarker(ReplaceMarker("a person's text", m)); !ok || got != m {
		t.Errorf("appended: %+v, %v", got, ok)
	}
	if strings.Contains(Marker{App: "-->"}.String(), "-->\"") {
		t.Error("a value ended the comment")
	}
	edits := full().Edits
	if Content(edits) != Content([]Edit{edits[1], edits[0]}) {
		t.Error("the order of edits changed their content")
	}
}

func FuzzParseTrailers(f *testing.F) {
	f.Add(full().String())
	f.Fuzz(func(t *testing.T, message string) {
		first, ok := ParseTrailers(message)
		if !ok {
			return
		}
		second, ok := ParseTrailers(first.String())
		if !ok {
			t.Fatalf("what was written does not read: %q", first.String())
		}
		if d := cmp.Diff(first, second); d != "" {
			t.Errorf("(-first +second)\n%s", d)
		}
	})
}

// TestWithin: what people write around the text of a pull request stays.
func TestWithin(t *testing.T) {
	marker := Marker{App: "todo-api", Environment: "staging"}.String()
	old, text := BodyStart+"\nold\n"+marker+"\n", BodyStart+"\nnew\n"+marker+"\n"
	for _, tt := range []struct{ name, body, want string }{
		{"nobody has written", old, text},
		{"above and below", "Ask li first.\n\n" + old + "\nSeen by mei.\n", "Ask li first.\n\n" + BodyStart + "\nnew\n" + marker + "\n\nSeen by mei.\n"},
		{"within", strings.Replace(old, "old", "old, and more", 1), text},
		{"no text of ours", "A person's.", text},
		{"the start alone", BodyStart + "\nold", text},
		{"the marker alone", "old\n" + marker + "\n", text},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Within(tt.body, text)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := Within(got, text); again != got {
				t.Errorf("a second time %q, want %q", again, got)
			}
		})
	}
}
