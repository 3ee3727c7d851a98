package tagboat_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"tagboat/chatops"
	"tagboat/image"
	"tagboat/scm"
)

// GitLab's components in templates/. GitLab checks an input's regex with RE2, whose
// syntax and anchors are those of Go's regexp; the tools that run pipelines on a
// machine do not look at it. So it is done here.

// ciInput is one of spec:inputs.
type ciInput struct {
	Type    string
	Regex   string
	Options []string
	Default any
}

// ciFile is a pipeline or a component: what its header declares, and the rest.
type ciFile struct {
	inputs map[string]ciInput
	rest   map[string]any
}

func readCI(text string) (f ciFile, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var documents []yaml.Node
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return f, err
		}
		documents = append(documents, document)
	}
	if len(documents) == 2 {
		var header struct {
			Spec struct{ Inputs map[string]ciInput }
		}
		if err := documents[0].Decode(&header); err != nil {
			return f, err
		}
		f.inputs = header.Spec.Inputs
	}
	if len(documents) == 0 || len(documents) > 2 {
		return f, fmt.Errorf("%d documents", len(documents))
	}
	return f, documents[len(documents)-1].Decode(&f.rest)
}

// Where an input is put, from the harmless to the one that a shell reads.
const (
	inRaw   = iota // the whole value of a variable with expand: false
	inValue        // the whole of another value: GitLab may put variables in for $NAME
	inPart         // a part of a value, or of a key
	inScript
)

var block = regexp.MustCompile(`\$\[\[\s*inputs\.([a-z-]+)\s*\]\]`)

// places says of each input where the worst place is that it is put at.
func (f ciFile) places() map[string]int {
	found := map[string]int{}
	note := func(text string, at int) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			place := at
			if m[0] != text {
				place = max(at, inPart)
			}
			if had, ok := found[m[1]]; !ok || place > had {
				found[m[1]] = place
			}
		}
	}
	var walk func(v any, at int)
	walk = func(v any, at int) {
		switch v := v.(type) {
		case string:
			note(v, at)
		case []any:
			for _, one := range v {
				walk(one, at)
			}
		case map[string]any:
			for key, one := range v {
				note(key, inPart)
				below := at
				if strings.HasSuffix(key, "script") {
					below = inScript
				}
				if v["expand"] == false && key == "value" {
					below = inRaw
				}
				walk(one, below)
			}
		}
	}
	walk(f.rest, inValue)
	return found
}

// check holds the inputs of a component to what their places bear. good has lawful
// values of each; they are spoiled in each of the ways that must not pass.
func (f ciFile) check(good map[string][]string) error {
	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	places := f.places()
	for name := range places {
		if _, declared := f.inputs[name]; !declared {
			complain("%s is used and not declared", name)
		}
	}
	for name, in := range f.inputs {
		place, used := places[name]
		switch {
		case !used:
			complain("%s is declared and not used", name)
		case in.Type == "boolean" || in.Type == "string" && in.Options != nil:
		case in.Type != "string" || !strings.HasPrefix(in.Regex, "^") || !strings.HasSuffix(in.Regex, "$") || strings.Contains(in.Regex, "(?"):
			complain("%s takes any text: %q", name, in.Regex)
		default:
			if err := in.checkRegex(place, good[name]); err != nil {
				complain("%s: %w", name, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (in ciInput) checkRegex(place int, good []string) error {
	regex, err := regexp.Compile(in.Regex)
	if err != nil {
		return err
	}
	if len(good) == 0 {
		return errors.New("no lawful value is known")
	}
	var errs []error
	if text, ok := in.Default.(string); ok && !regex.MatchString(text) {
		errs = append(errs, fmt.Errorf("%s does not take its default %q", in.Regex, text))
	}
	for _, value := range good {
		if !regex.MatchString(value) {
			errs = append(errs, fmt.Errorf("%s does not take %q", in.Regex, value))
		}
		for _, bad := range hostile(place) {
			for _, at := range []int{0, len(value) / 2, len(value)} {
				if spoiled := value[:at] + bad + value[at:]; regex.MatchString(spoiled) {
					errs = append(errs, fmt.Errorf("%s takes %q", in.Regex, spoiled))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// hostile is what must not pass at a place.
func hostile(place int) []string {
	bad := []string{"\n", "\r", "\r\n", "\n---\nx: {script: id}\n"}
	if place >= inValue {
		bad = append(bad, "'")
	}
	if place >= inPart {
		for r := range rune(0x100) {
			safe := strings.ContainsRune("_.,=:/@+ -", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			if !safe {
				bad = append(bad, string(r))
			}
		}
		bad = append(bad, "$(id)", "`id`", "${IFS}", "$[[ inputs.to ]]", "\u2028", "\u00a0", "ａ")
	}
	return bad
}

const digestOf0 = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// lawful are values that the inputs of the components must take.
func lawful() map[string]map[string][]string {
	tagboat := []string{"registry.acme.example/tagboat@" + digestOf0, "$CI_REGISTRY/tools/tagboat:shell@" + digestOf0}
	jobs := map[string][]string{"tagboat": tagboat, "job-name": {"ship it"}, "stage": {"deploy", ".post"}}
	with := func(more map[string][]string) map[string][]string {
		all := maps.Clone(jobs)
		maps.Copy(all, more)
		return all
	}
	repo := []string{"", "acme/platform/config", "https://gitlab.acme.example/acme/config"}
	return map[string]map[string][]string{
		"promote": with(map[string][]string{
			"image": {"", "$CI_REGISTRY_IMAGE:$CI_COMMIT_SHA", "a/b:v1,a/c@" + digestOf0}, "repo": repo,
			"to": {"staging"}, "from": {"", "staging"}, "ring": {"", "eu-1"}, "app": {"", "todo-api,todo_web.v2"},
			"path": {"", "apps/to do/overlays/staging"}, "base": {"", "release/1.x"}, "platform": {"", "linux/amd64,linux/arm64/v8"},
			"wait": {"", "1h2m3.5s"}, "label": {"", `env::prod,needs "review"`}, "reviewer": {"", "mei,li"}, "args": {"", "--draft --assignee mei"},
		}),
		"verify": with(map[string][]string{"repo": repo}),
		"chatops": with(map[string][]string{
			"speaker": {"", "tagboat-serve", "project_4711_bot_5f2,serve.2"}, "accept": {"", "todo-ci=todo-api,todo-web,web-ci=web"},
			"args":    {"", "--wait=2m --reply-host chat.acme.example:8443"},
			"request": asked("request"), "command": asked("command"), "image": asked("image"), "to": asked("to"), "user": asked("user"),
			"reply": asked("reply"), "comment": asked("comment"),
		}),
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

func TestComponents(t *testing.T) {
	names, err := filepath.Glob("templates/*/template.yml")
	if err != nil || len(names) != len(lawful()) {
		t.Fatalf("%q, %v: each has lawful values here", names, err)
	}
	for _, name := range names {
		name, good := filepath.ToSlash(name), lawful()[filepath.Base(filepath.Dir(name))]
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := readCI(string(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := f.check(good); err != nil {
			t.Errorf("%s:\n%v", name, err)
		}
		for input := range good {
			if _, ok := f.inputs[input]; !ok {
				t.Errorf("%s has no input %s", name, input)
			}
		}
	}
}

// TestComponentsAreRefused: what is wrong does not pass.
func TestComponentsAreRefused(t *testing.T) {
	const sound = "spec: {inputs: {x: {type: string, regex: '^[a-z]*$'}}}\n---\njob: {script: ['echo $[[ inputs.x ]]']}\n"
	good := map[string][]string{"x": {"", "abc"}}
	for name, change := range map[string][2]string{
		"nothing":                {"x", "x"},
		"no regex":               {", regex: '^[a-z]*$'", ""},
		"no type":                {"type: string, ", ""},
		"a number":               {"string", "number"},
		"no regex at all":        {"^[a-z]*$", "^[a-z"},
		"no beginning":           {"^[a-z]*$", "[a-z]*$"},
		"no end":                 {"^[a-z]*$", "^[a-z]*"},
		"the end of a line":      {"^[a-z]*$", "(?m)^[a-z]*$"},
		"the end of a line, too": {"^[a-z]*$", "^(?m:[a-z]*)$"},
		"a quote in a script":    {"[a-z]", "[a-z\"]"},
		"a dollar in a script":   {"[a-z]", "[a-z$]"},
		"a line break in one":    {"[a-z]", `[a-z\s]`},
		"too little":             {"[a-z]", "[a-b]"},
		"not its default":        {"type: string", "type: string, default: '7'"},
		"not used":               {"$[[ inputs.x ]]", "x"},
		"not declared":           {"inputs.x", "inputs.y"},
		"a quote in a key":       {"job: {script: ['echo $[[ inputs.x ]]']}", "'$[[ inputs.x ]]': {}"},
	} {
		text := strings.Replace(sound, change[0], change[1], 1)
		if name == "a quote in a key" {
			text = strings.Replace(text, "[a-z]", `[a-z"]`, 1)
		}
		f, err := readCI(text)
		if err == nil {
			err = f.check(good)
		}
		if (err == nil) != (name == "nothing") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	f, err := readCI(strings.NewReplacer("[a-z]", `[^\r\n]`, "{script: ['echo $[[ inputs.x ]]']}", "{variables: {X: {value: '$[[ inputs.x ]]', expand: EXPAND}}}").Replace(sound))
	if err != nil {
		t.Fatal(err)
	}
	variable := f.rest["job"].(map[string]any)["variables"].(map[string]any)["X"].(map[string]any)
	for _, expand := range []bool{true, false} {
		variable["expand"] = expand
		if err := f.check(good); (err != nil) != expand {
			t.Errorf("any text in a variable, expand: %v: %v", expand, err)
		}
	}
}

// TestChatopsComponent holds the component to what a job reads, and to what serve
// and request send.
func TestChatopsComponent(t *testing.T) {
	text, err := os.ReadFile("templates/chatops/template.yml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := readCI(string(text))
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

var ourComponent = regexp.MustCompile(`/tagboat/([a-z]+)@COMMIT$`)

// checkPipeline holds what a pipeline gives to our components to what they declare,
// and what it declares itself to what it does with it.
func checkPipeline(text string) error {
	f, err := readCI(text)
	if err != nil {
		return err
	}
	for name, place := range f.places() {
		in, declared := f.inputs[name]
		if !declared {
			return fmt.Errorf("%s is used and not declared", name)
		}
		if place > inValue && in.Regex == "" {
			return fmt.Errorf("%s takes any text into a script", name)
		}
		if in.Regex != "" {
			if err := in.checkRegex(place, []string{fmt.Sprint(in.Default)}); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	includes, _ := f.rest["include"].([]any)
	for _, one := range includes {
		include, _ := one.(map[string]any)
		component, ok := include["component"].(string)
		if !ok {
			continue
		}
		m := ourComponent.FindStringSubmatch(component)
		if m == nil {
			return fmt.Errorf("%s is no component of ours at a commit", component)
		}
		inputs, _ := include["inputs"].(map[string]any)
		if err := f.give(m[1], inputs); err != nil {
			return fmt.Errorf("component %s: %w", m[1], err)
		}
	}
	return nil
}

// give holds the inputs of a component to its specification. What is handed on is,
// without anybody's doing, the pipeline's own default.
func (f ciFile) give(component string, inputs map[string]any) error {
	text, err := os.ReadFile("templates/" + component + "/template.yml")
	if err != nil {
		return err
	}
	template, err := readCI(string(text))
	if err != nil {
		return err
	}
	for name := range inputs {
		if _, known := template.inputs[name]; !known {
			return fmt.Errorf("it has no input %s", name)
		}
	}
	for name, input := range template.inputs {
		given, ok := inputs[name]
		value := strings.ReplaceAll(fmt.Sprint(given), "sha256:…", digestOf0)
		if m := block.FindStringSubmatch(value); m != nil && m[0] == value {
			value = fmt.Sprint(f.inputs[m[1]].Default)
		}
		switch {
		case !ok && input.Default == nil:
			return fmt.Errorf("it wants the input %s", name)
		case ok && input.Regex != "" && !regexp.MustCompile(input.Regex).MatchString(value):
			return fmt.Errorf("input %s: %q does not match %s", name, value, input.Regex)
		case ok && input.Options != nil && !slices.Contains(input.Options, value):
			return fmt.Errorf("input %s: %q is none of %q", name, value, input.Options)
		}
	}
	return nil
}
