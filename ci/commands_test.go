package ci

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnnotate(t *testing.T) {
	tests := []struct {
		name string
		in   Annotation
		want string
	}{
		{"plain", Annotation{Level: Notice, Message: "opened"}, "::notice::opened\n"},
		{"title and escapes", Annotation{Level: Error, Title: "50%: a,b\n", Message: "a: 50%,\r\nb"},
			"::error title=50%25%3A a%2Cb%0A::a: 50%25,%0D%0Ab\n"},
		{"file and line", Annotation{Level: Warning, File: "a,b.yaml", Line: 7, Message: "x"}, "::warning file=a%2Cb.yaml,line=7::x\n"},
		{"line without file", Annotation{Level: Warning, Line: 7, Message: "x"}, "::warning::x\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := (Job{Kind: Gitea}).Commands(&b).Annotate(tt.in); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.want {
				t.Errorf("got %q, want %q", b.String(), tt.want)
			}
		})
	}
}

func TestCommandsOutsideActions(t *testing.T) {
	for _, kind := range []Kind{None, GitLab} {
		var b strings.Builder
		c := Job{Kind: kind}.Commands(&b)
		err := errors.Join(c.Mask("secret"), c.Guard(), c.Annotate(Annotation{Level: Error, Message: "x"}), c.Release())
		if err != nil || b.Len() > 0 {
			t.Errorf("%q: wrote %q, error %v; want nothing", kind, b.String(), err)
		}
	}
}

func TestMask(t *testing.T) {
	var b strings.Builder
	key := "-----BEGIN KEY-----\nbGluZSBvbmU=\nbGluZSB0d28=\n-----END KEY-----\n"
	if err := (Job{Kind: GitHub}).Commands(&b).Mask("abc", "50%off", key); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"::add-mask::50%25off\n", "::add-mask::bGluZSBvbmU=\n", "::add-mask::bGluZSB0d28=\n",
		"::add-mask::-----BEGIN KEY-----%0AbGluZSBvbmU=%0AbGluZSB0d28=%0A-----END KEY-----\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "::abc\n") {
		t.Errorf("three characters are masked:\n%s", b.String())
	}
}

func TestGuard(t *testing.T) {
	var b strings.Builder
	c := Job{Kind: GitHub}.Commands(&b)
	err := errors.Join(c.Guard(), c.Guard(), c.Annotate(Annotation{Level: Error, Message: "x"}), c.Mask("secret"), c.Release(), c.Release())
	if err != nil {
		t.Fatal(err)
	}
	// Each token opens one gap only: a text that quotes one from the log opens none.
	names := map[string]string{}
	got := regexp.MustCompile(`[A-Z2-7]{26}`).ReplaceAllStringFunc(b.String(), func(token string) string {
		if names[token] == "" {
			names[token] = string(rune('A' + len(names)))
		}
		return names[token]
	})
	want := "::stop-commands::A\n::A::\n::error::x\n::stop-commands::B\n::B::\n::add-mask::secret\n::stop-commands::C\n::C::\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
