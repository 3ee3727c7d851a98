package tagboat_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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

func readTemplate(component string) (ciFile, error) {
	text, err := os.ReadFile(filepath.Join("templates", component, "template.yml"))
	if err != nil {
		return ciFile{}, err
	}
	return readCI(string(text))
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

func TestComponents(t *testing.T) {
	names, err := filepath.Glob("templates/*/template.yml")
	if err != nil || len(names) != len(lawful()) {
		t.Fatalf("%q, %v: each has lawful values here", names, err)
	}
	for _, path := range names {
		name := filepath.Base(filepath.Dir(path))
		good := lawful()[name]
		f, err := readTemplate(name)
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
