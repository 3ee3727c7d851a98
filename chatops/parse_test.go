package chatops_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/chatops"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	type command = chatops.Command
	tests := []struct {
		line string
		want command
	}{
		{"/promote todo-api to production", command{Verb: chatops.Promote, App: "todo-api", Environment: "production"}},
		{"/promote todo-api from staging to production", command{Verb: chatops.Promote, App: "todo-api", From: "staging", Environment: "production"}},
		{"/promote todo-api to production from staging", command{Verb: chatops.Promote, App: "todo-api", From: "staging", Environment: "production"}},
		{"/promote todo-api@" + digest + " to production ring canary", command{Verb: chatops.Promote, App: "todo-api", Digest: digest, Environment: "production", Ring: "canary"}},
		{`/promote a.b_c to p --dry-run --reason "Fix  the\fire <b>"`, command{Verb: chatops.Promote, App: "a.b_c", Environment: "p", DryRun: true, Reason: `Fix the\fire <b>`}},
		{`/promote a --reason "急ぎ" to p`, command{Verb: chatops.Promote, App: "a", Environment: "p", Reason: "急ぎ"}},
		{"/promote a to p  \t\r\nand more\n/promote b to p", command{Verb: chatops.Promote, App: "a", Environment: "p"}},
		{"/promote   a   to   p", command{Verb: chatops.Promote, App: "a", Environment: "p"}},
		{"/rollback todo-api in production", command{Verb: chatops.Rollback, App: "todo-api", Environment: "production"}},
		{"/rollback a in p to v1.4.2", command{Verb: chatops.Rollback, App: "a", Environment: "p", To: "v1.4.2"}},
		{"/rollback a in p ring r to " + digest, command{Verb: chatops.Rollback, App: "a", Environment: "p", Ring: "r", To: digest}},
		{`/rollback a in p to 1a2b3c4 --reason "it burns"`, command{Verb: chatops.Rollback, App: "a", Environment: "p", To: "1a2b3c4", Reason: "it burns"}},
		{"/hold production database migration", command{Verb: chatops.Hold, Environment: "production", Reason: "database migration", Loose: true}},
		{`/hold production "database migration"`, command{Verb: chatops.Hold, Environment: "production", Reason: "database migration"}},
		{`/hold production todo-api "migration"`, command{Verb: chatops.Hold, Environment: "production", App: "todo-api", Reason: "migration"}},
		{"/hold production until 2h migration", command{Verb: chatops.Hold, Environment: "production", Until: "2h", Reason: "migration", Loose: true}},
		{"/hold production todo-api until 2026-12-01T08:00:00Z it migrates", command{Verb: chatops.Hold, Environment: "production", App: "todo-api", Until: "2026-12-01T08:00:00Z", Reason: "it migrates", Loose: true}},
		{"/release production", command{Verb: chatops.Release, Environment: "production"}},
		{"/release production todo-api", command{Verb: chatops.Release, Environment: "production", App: "todo-api"}},
		{"/help", command{Verb: chatops.Help}},
	}
	for _, tt := range tests {
		got, err := chatops.Parse(tt.line)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		if again, err := chatops.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s is written %s, which reads as %+v, %v", tt.line, got, again, err)
		}
	}
}

// What is not ours gets no answer.
func TestParseSilent(t *testing.T) {
	for _, text := range []string{
		"", "\n/promote a to b", "promote a to b", " /promote a to b", "\ufeff/promote a to b", "> /promote a to b", "`/promote a to b`",
		"/Promote a to b", "/PROMOTE a to b", "/promot a to b", "/promoted a to b", "/promote-now", "/release.md", "/hold/on", "/help?", "/promote2 x",
		"/", "//promote", "/lgtm", "/\u0440romote a to b", "looks good\n/promote a to b", "/promote_all",
	} {
		if got, err := chatops.Parse(text); !errors.Is(err, chatops.ErrNotCommand) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestParseRefused(t *testing.T) {
	long := strings.Repeat("x", 201)
	tests := []struct{ line, want string }{
		{"/promote", "the app is missing"},
		{"/promote todo-api", "no environment: write to ENV"},
		{"/promote to production", `"to" stands where the app belongs`},
		{"/promote todo-api to", "what belongs to to is missing"},
		{"/promote todo-api to from staging", `"from" stands where the environment belongs`},
		{"/promote todo-api production", `"production" is no word of this command`},
		{"/promote todo-api too production", `"too" is no word of this command: did you mean to?`},
		{"/promote todo-api to production to staging", `"to" stands there twice`},
		{"/promote todo-api to production --dry-run --dry-run", `"--dry-run" stands there twice`},
		{"/promote todo-api to production --dryrun", "did you mean --dry-run?"},
		{"/promote todo-api to production --force", `"--force" is no word`},
		{"/promote todo-api to production please", `"please" is no word`},
		{"/promote Todo-API to production", `"Todo-API" cannot be the name of an app`},
		{"/promote todo-api to Production", `"Production" cannot be the name of an environment`},
		{"/promote ../x to production", "cannot be the name"},
		{"/promote a/b to production", "cannot be the name"},
		{"/promote $(id) to production", "cannot be the name"},
		{"/promote `id` to production", "cannot be the name"},
		{"/promote a;id to production", "cannot be the name"},
		{"/promote @mei to production", "cannot be the name"},
		{"/promote todo-api@ to production", "is no digest"},
		{"/promote todo-api@sha256:12 to production", "is no digest"},
		{"/promote todo-api@v1.4.2 to production", "is no digest"},
		{"/promote todo-api@" + strings.ToUpper(digest) + " to production", "is no digest"},
		{"/promote todo-api@" + digest + "@x to production", "is no digest"},
		{`/promote "todo-api" to production`, "is in quotes"},
		{`/promote todo-api "to" production`, `"to" is no word`},
		{`/promote todo-api to production --reason because`, "put the reason in quotes"},
		{`/promote todo-api to production --reason="x"`, "inside of a word"},
		{`/promote todo-api to production --reason "x`, "not closed"},
		{`/promote todo-api to production --reason "x"y`, "a space is missing"},
		{`/promote todo-api to production --reason ""`, "the reason is empty"},
		{`/promote todo-api to production --reason "  "`, "the reason is empty"},
		{`/promote todo-api to production --reason "` + long + `"`, "more than 200 characters"},
		{"/promote todo-api to production --reason \u201cx\u201d", "plain quotation marks"},
		{"/promote todo-api to production \u2014dry-run", "plain dashes"},
		{"/promote todo-\u2011api to production", "plain dashes"},
		{"/promote todo-api\u00a0to production", "U+00A0 is a blank"},
		{"/promote\u00a0todo-api to production", "U+00A0 is a blank"},
		{"/promote\ttodo-api to production", "U+0009 is a blank"},
		{"/promote todo-api to prod\u200buction", "U+200B cannot be seen"},
		{"/promote\u200b todo-api to production", "U+200B cannot be seen"},
		{"/promote todo-api to production\ufeff", "U+FEFF cannot be seen"},
		{"/promote todo-api to \u202enoitcudorp", "U+202E cannot be seen"},
		{"/promote todo-api to production --reason \"a\u2066b\"", "U+2066 cannot be seen"},
		{"/promote todo-api to production --reason \"a\ufe0f\"", "U+FE0F cannot be seen"},
		{"/promote todo-api to production --reason \"a\u3164b\"", "U+3164 cannot be seen"},
		{"/promote todo-api to production --reason \"e\u0301\"", "not NFC"},
		{"/promote todo-api to production\x00", "U+0000 cannot be seen"},
		{"/promote todo-api to production\x1b[2J", "U+001B cannot be seen"},
		{"/promote todo-api\rto production", "U+000D is a blank"},
		{"/promote todo-api to \xff", "UTF-8"},
		{"/promote todo-\u0430pi to production", "U+0430"},
		{"/promote todo-api to product\u0456on", "U+0456"},
		{"/promote todo-api to \uff50roduction", "U+FF50"},
		{"/promote todo-api to production" + strings.Repeat(" ", 512) + ".", "at most 512"},
		{"/rollback todo-api", "no environment: write in ENV"},
		{"/rollback todo-api to v1", "no environment: write in ENV"},
		{"/rollback todo-api@" + digest + " in production", "behind to"},
		{"/rollback todo-api in production to", "what belongs to to is missing"},
		{"/rollback todo-api in production to in", "neither a digest"},
		{"/rollback todo-api in production to -x", "neither a digest"},
		{"/rollback todo-api in production to sha256:12", "neither a digest"},
		{`/rollback todo-api in production to "v1"`, "neither a digest"},
		{"/rollback todo-api in production from staging", `"from" is no word`},
		{"/hold", "the environment is missing"},
		{"/hold production", "no reason"},
		{"/hold production until", "the time behind until is missing"},
		{"/hold production until friday migration", `"friday" is no time`},
		{"/hold production until 0s migration", `"0s" is no time`},
		{"/hold production until 9999d migration", "is no time"},
		{"/hold production until 2h", "no reason"},
		{`/hold production ""`, "the reason is empty"},
		{`/hold production "a" b`, `"b" is one word too many`},
		{`/hold production a b "c"`, "put the whole reason in quotes"},
		{`/hold production --until 2h x`, "put the whole reason in quotes"},
		{`/hold production "x" until 2h x`, "is in quotes"},
		{"/release", "the environment is missing"},
		{"/release production todo-api now", `"now" is one word too many`},
		{"/help me", `"me" is one word too many`},
	}
	for _, tt := range tests {
		got, err := chatops.Parse(tt.line)
		var syntax *chatops.SyntaxError
		if !errors.As(err, &syntax) || !errors.Is(err, chatops.ErrSyntax) {
			t.Errorf("%q: %+v, %v", tt.line, got, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.line, err, tt.want)
		}
		if syntax.Verb.Usage() == "" || !strings.HasPrefix(tt.line, "/"+string(syntax.Verb)) {
			t.Errorf("%q: usage of %q", tt.line, syntax.Verb)
		}
	}
}

// The line's end does not count to its length, and 512 bytes are read.
func TestParseLength(t *testing.T) {
	head := "/promote a to p"
	fits := head + strings.Repeat(" ", chatops.LineLimit-len(head)-len(" --dry-run")) + " --dry-run"
	if len(fits) != chatops.LineLimit {
		t.Fatal(len(fits))
	}
	if _, err := chatops.Parse(fits + "   \r\nmore"); err != nil {
		t.Error(err)
	}
	if _, err := chatops.Parse(strings.Replace(fits, "  ", "   ", 1)); err == nil {
		t.Error("513 bytes are read")
	}
}

// FuzzParse: no text makes Parse panic; what it takes is written back in the
// grammar as the same command, is no longer than it was, and has nothing in its
// names that a shell, a path or Markdown would make something of.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"/promote todo-api@" + digest + ` from staging to production ring canary --dry-run --reason "why"`,
		"/rollback a in p to v1", "/hold p a until 2h why not", `/hold p "a until"`, "/hold p b until until 1h x", "/release p a", "/help", "/promote\u00a0a", `/hold p a "`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := chatops.Parse(text)
		if err != nil {
			if !errors.Is(err, chatops.ErrNotCommand) && !errors.Is(err, chatops.ErrSyntax) {
				t.Fatalf("%v is neither", err)
			}
			return
		}
		written := c.String()
		if again, err := chatops.Parse(written); err != nil || again != c {
			t.Fatalf("%+v is written %q, which reads as %+v, %v", c, written, again, err)
		}
		if !strings.HasPrefix(text, "/"+string(c.Verb)) || len(written) > len(chatops.FirstLine(text)) {
			t.Fatalf("%q of %q", written, text)
		}
		for _, name := range []string{c.App, c.Environment, c.From, c.Ring} {
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" || strings.Contains(name, "..") {
				t.Fatalf("name %q", name)
			}
		}
	})
}
