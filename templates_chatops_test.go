package tagboat_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/chatops"
	"tagboat/image"
	"tagboat/scm"
)

// TestChatopsComponent holds the component to what a job reads, and to what serve
// and request send.
func TestChatopsComponent(t *testing.T) {
	f, err := readTemplate("chatops")
	if err != nil {
		t.Fatal(err)
	}
	job := f.rest[`$[[ inputs.job-name ]]`].(map[string]any)
	want := map[string]any{"GIT_STRATEGY": "none"}
	for _, name := range chatops.InputNames() {
		want[chatops.Variable(name)] = map[string]any{"value": "$[[ inputs." + name + " ]]", "expand": false}
		regex := regexp.MustCompile(f.inputs[name].Regex)
		for _, value := range asked(name) {
			if long := strings.Repeat("x", 1001) + value; regex.MatchString(long) || regex.MatchString(strings.Repeat(value+"0", 1001)) {
				t.Errorf("%s takes %d characters", name, len(long))
			}
		}
		if f.inputs[name].Default != "" {
			t.Errorf("%s has no default: a pipeline that asks for something else would not start", name)
		}
	}
	if diff := cmp.Diff(want, job["variables"]); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// TestChatopsHeader: the pipeline that the documentation shows declares what serve
// and request send, and hands on each.
func TestChatopsHeader(t *testing.T) {
	shown := 0
	for _, s := range snippets(t) {
		if s.page != "docs/chatops.md" || !strings.Contains(s.text, "/chatops@COMMIT") {
			continue
		}
		f, err := readCI(s.text)
		if err != nil || f.inputs == nil {
			continue // GitLab's own ChatOps needs no inputs
		}
		shown++
		declared := slices.Sorted(maps.Keys(f.inputs))
		if diff := cmp.Diff(slices.Sorted(slices.Values(chatops.InputNames())), declared); diff != "" {
			t.Errorf("%s: inputs (-want +got):\n%s", s, diff)
		}
		given := f.rest["include"].([]any)[0].(map[string]any)["inputs"].(map[string]any)
		for _, name := range declared {
			if given[name] != "$[[ inputs."+name+" ]]" || f.inputs[name].Default != "" {
				t.Errorf("%s: %s is not handed on as it is, or has no empty default", s, name)
			}
		}
	}
	if shown != 1 {
		t.Errorf("%d pipelines with inputs in docs/chatops.md", shown)
	}
}

// asked are values of an input as tagboat serve and tagboat request write them.
func asked(name string) []string {
	long := strings.Repeat("x", 200)
	values := []string{""}
	for _, ask := range []chatops.Ask{
		{Mark: "b7e2-" + strings.Repeat("9", 59), Command: `/hold production until 2h it's $5 & "more": {x} #1 \ $(id) ` + "`id` ü"},
		{Command: "/hold production " + strings.Repeat("ü", 247)},
		{To: "staging-" + long[:92], Image: image.Reference{Repository: "registry.acme.example:5000/acme/platform/" + long, Tag: "v1.4_2", Digest: digestOf0}},
		{User: "slack:T0123456789ABC/U0123456789ABC", Reply: "https://hooks.slack.com/commands/T01/123456789/aZ09?x=1&y=%20~"},
		{LineHash: strings.Repeat("a", 64), Comment: chatops.CommentAt{Repository: "acme/platform/" + long, CommentRef: scm.CommentRef{ID: 1 << 59, Number: 999999999, PullRequest: true}}},
	} {
		if value, ok := ask.Inputs()[name].(string); ok {
			values = append(values, value)
		}
	}
	return values
}
