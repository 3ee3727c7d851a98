package record

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func anHold() Hold {
	return Hold{
		Environment: "production", App: "todo-api", By: "acme-bot", Note: "asked by mei, as told",
		Reason: `incident #12: "the disk" \ is full 磁碟　满了 👩‍💻 <b> - ${x}`,
		Since:  time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC), Until: time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC),
		Allow: []string{digest, "sha512:" + strings.Repeat("b", 128)},
	}
}

func TestHoldRoundTrip(t *testing.T) {
	least := Hold{Environment: "staging", Reason: "no: really"}
	for _, want := range []Hold{anHold(), least} {
		if err := want.Check(); err != nil {
			t.Fatal(err)
		}
		got, err := ParseHold(want.Path(), want.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, want.Bytes())
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s\n%s", d, want.Bytes())
		}
	}
	const text = "reason: \"no: really\"\n"
	if d := cmp.Diff(text, string(least.Bytes())); d != "" {
		t.Error(d)
	}
}

// TestParseHoldOfPeople: what a person may write by hand.
func TestParseHoldOfPeople(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Hold
	}{
		"bare":       {"reason: no promotions today\n", Hold{Reason: "no promotions today"}},
		"block":      {"reason: |\n  no promotions today\n", Hold{Reason: "no promotions today"}},
		"comment":    {"# mei\nreason: 'it''s full' # yes\nuntil:\n", Hold{Reason: "it's full"}},
		"a zone":     {"reason: x\nuntil: 2026-03-05T12:00:00+08:00\n", Hold{Reason: "x", Until: time.Date(2026, 3, 5, 4, 0, 0, 0, time.UTC)}},
		"a number":   {"reason: 12\n", Hold{Reason: "12"}},
		"CRLF, BOM":  {"\ufeffreason: x\r\nby: mei\r\n", Hold{Reason: "x", By: "mei"}},
		"two dashes": {"---\nreason: x\n", Hold{Reason: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Environment = "production"
			got, err := ParseHold("holds/production.yaml", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseHoldRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"nothing":        {"", "empty"},
		"a comment":      {"# off\n", "empty"},
		"no reason":      {"by: mei\n", "no reason"},
		"blank reason":   {"reason: '  '\n", "no reason"},
		"unknown key":    {"reason: x\nexpires: 2026-03-05T12:00:00Z\n", "expires"},
		"twice":          {"reason: x\nreason: y\n", "already defined"},
		"a list":         {"- reason: x\n", "cannot unmarshal"},
		"two documents":  {"reason: x\n---\nreason: y\n", "more than one document"},
		"no YAML":        {"reason: [x\n", "yaml"},
		"a date":         {"reason: x\nuntil: 2026-03-05\n", "until"},
		"no such day":    {"reason: x\nuntil: 2026-02-30T12:00:00Z\n", "until"},
		"tomorrow":       {"reason: x\nsince: tomorrow\n", "since"},
		"the zero time":  {"reason: x\nuntil: 0001-01-01T00:00:00Z\n", "before all times"},
		"no digest":      {"reason: x\nallow: [latest]\n", "not a digest"},
		"allow of text":  {"reason: x\nallow: all\n", "cannot unmarshal"},
		"two lines":      {"reason: \"x\\ny\"\n", "U+000A"},
		"escape":         {"reason: \"\\e[31mx\"\n", "U+001B"},
		"turned text":    {"reason: \"\\u202ex\"\n", "U+202E"},
		"long":           {"reason: " + strings.Repeat("x", ReasonLimit+1) + "\n", "at most 500"},
		"a long file":    {"reason: x\n#" + strings.Repeat("x", holdFileLimit), "bytes"},
		"a conflict":     {"<<<<<<< HEAD\nreason: x\n=======\nreason: y\n>>>>>>> b\n", "yaml"},
		"alias laughter": {"reason: &a x\nallow: [&b [*a,*a], [*b,*b]]\n", "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseHold("holds/production.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "holds/production.yaml") {
				t.Errorf("%+v, %v; want an error with %q", got, err, c.says)
			}
		})
	}
}

func TestHoldPath(t *testing.T) {
	for _, c := range []struct{ environment, app, path string }{
		{"production", "", "holds/production.yaml"},
		{"production", "todo-api", "holds/production/todo-api.yaml"},
		{"production", "a.yaml", "holds/production/a.yaml.yaml"},
	} {
		if got := HoldPath(c.environment, c.app); got != c.path {
			t.Errorf("HoldPath(%s, %s) = %s", c.environment, c.app, got)
		}
		environment, app, err := SplitHoldPath(c.path)
		if err != nil || environment != c.environment || app != c.app {
			t.Errorf("SplitHoldPath(%s) = %s, %s, %v", c.path, environment, app, err)
		}
	}
	for _, path := range []string{
		"", "holds", "holds.yaml", "holds/.yaml", "holds/production", "holds/production.yml", "holds/Production.yaml", "holds/production/.yaml",
		"holds/production/a/b.yaml", "hold/production.yaml", "holds//production.yaml", "holds/../production.yaml", "holds/README.md", "holds/production/A.yaml",
	} {
		if environment, app, err := SplitHoldPath(path); err == nil {
			t.Errorf("SplitHoldPath(%s) = %s, %s; want an error", path, environment, app)
		}
	}
}

func TestHoldCheck(t *testing.T) {
	for name, change := range map[string]func(*Hold){
		"no environment": func(h *Hold) { h.Environment = "" },
		"environment":    func(h *Hold) { h.Environment = "../x" },
		"app":            func(h *Hold) { h.App = "a/b" },
		"no reason":      func(h *Hold) { h.Reason = " " },
		"not UTF-8":      func(h *Hold) { h.Reason = "a\xff" },
		"by":             func(h *Hold) { h.By = "mei\nreason: x" },
		"note":           func(h *Hold) { h.Note = strings.Repeat("x", holderLimit+1) },
		"allow":          func(h *Hold) { h.Allow = []string{"v1"} },
		"far away":       func(h *Hold) { h.Until = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		h := anHold()
		change(&h)
		if err := h.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestHoldStops(t *testing.T) {
	noon := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	other := "sha256:" + strings.Repeat("c", 64)
	all, app := Hold{Environment: "production"}, Hold{Environment: "production", App: "todo-api"}
	until, allow := all, app
	until.Until, allow.Allow = noon, []string{digest}
	for name, c := range map[string]struct {
		hold             Hold
		environment, app string
		at               time.Time
		digests          []string
		want             bool
	}{
		"environment":         {all, "production", "todo-web", noon, nil, true},
		"another environment": {all, "staging", "todo-web", noon, nil, false},
		"app":                 {app, "production", "todo-api", noon, nil, true},
		"another app":         {app, "production", "todo-web", noon, nil, false},
		"everything":          {Hold{}, "staging", "todo-web", noon, nil, true},
		"a second before":     {until, "production", "a", noon.Add(-time.Second), nil, true},
		"at the end":          {until, "production", "a", noon, nil, false},
		"no clock":            {until, "production", "a", time.Time{}, nil, true},
		"allowed":             {allow, "production", "todo-api", noon, []string{digest}, false},
		"half allowed":        {allow, "production", "todo-api", noon, []string{digest, other}, true},
		"not allowed":         {allow, "production", "todo-api", noon, []string{other}, true},
		"which digest?":       {allow, "production", "todo-api", noon, nil, true},
	} {
		if got := c.hold.Stops(c.environment, c.app, c.at, c.digests); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestHoldString(t *testing.T) {
	for _, c := range []struct {
		hold Hold
		want string
	}{
		{Hold{Environment: "production", Reason: "incident"}, "production is held: incident"},
		{Hold{Reason: "unreadable"}, "every environment is held: unreadable"},
		{Hold{Environment: "production", App: "todo-api", By: "mei", Note: "as told", Reason: "incident", Since: anHold().Since, Until: anHold().Until.In(time.FixedZone("x", 3600))},
			"todo-api in production is held by mei (as told) since 2026-03-05T12:00:00Z until 2026-03-06T12:00:00Z: incident"},
	} {
		if d := cmp.Diff(c.want, c.hold.String()); d != "" {
			t.Error(d)
		}
	}
}

// FuzzHold: a hold that may be written is read back as it is, and what was read
// may be written.
func FuzzHold(f *testing.F) {
	h := anHold()
	f.Add(h.Reason, h.By, h.Note, int64(0), h.Bytes())
	f.Add("x\u0085y", "\u2028", "\ufeff", int64(1<<40), []byte("reason: >\n x\n y\n"))
	f.Fuzz(func(t *testing.T, reason, by, note string, until int64, file []byte) {
		h := Hold{Environment: "a", Reason: reason, By: by, Note: note, Until: time.Unix(until, 0).UTC()}
		if h.Check() == nil {
			same(t, h)
		}
		if h, err := ParseHold("holds/a.yaml", file); err == nil {
			same(t, h)
		}
	})
}

func same(t *testing.T, want Hold) {
	t.Helper()
	got, err := ParseHold(want.Path(), want.Bytes())
	if err != nil {
		t.Fatalf("what was written does not read: %v\n%q", err, want.Bytes())
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
