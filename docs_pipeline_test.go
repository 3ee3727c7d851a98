package tagboat_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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
	template, err := readTemplate(component)
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
