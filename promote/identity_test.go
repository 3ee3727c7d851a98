package promote

import (
	"errors"
	"strings"
	"testing"

	"tagboat/image"
)

func TestIdentify(t *testing.T) {
	img := func(s string) image.Reference {
		ref, err := image.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	one := []image.Reference{img("ghcr.io/acme/todo-api:v1")}
	two := append(one, img("ghcr.io/acme/todo-web:v1"))
	for name, c := range map[string]struct {
		q    Request
		want string // the head branch, or what the error says
	}{
		"defaults":             {Request{Repository: "r", Path: "apps/todo/overlays/staging", Images: one}, "tagboat/staging/todo-api"},
		"named":                {Request{Repository: "r", Path: "x", Environment: "prod", App: "todo", Images: one}, "tagboat/prod/todo"},
		"path is cleaned":      {Request{Repository: "r", Path: "./overlays//staging/", Images: one}, "tagboat/staging/todo-api"},
		"top with environment": {Request{Repository: "r", Path: ".", Environment: "prod", Images: one}, "tagboat/prod/todo-api"},
		"group":                {Request{Repository: "r", Path: "o/prod", App: "todo", Images: two}, "tagboat/prod/todo"},
		"no repository":        {Request{Path: "x", Images: one}, "--repo"},
		"no path":              {Request{Repository: "r", Images: one}, "--path"},
		"no image":             {Request{Repository: "r", Path: "x"}, "no image"},
		"no tag":               {Request{Repository: "r", Path: "x", Images: []image.Reference{img("a.example/b")}}, "neither tag nor digest"},
		"twice":                {Request{Repository: "r", Path: "x", Images: []image.Reference{img("nginx:1"), img("docker.io/library/nginx:2")}}, "twice"},
		"group without a name": {Request{Repository: "r", Path: "o/prod", Images: two}, "--app"},
		"entry of two":         {Request{Repository: "r", Path: "o/prod", App: "todo", Entry: "web", Images: two}, "--entry"},
		"leaves":               {Request{Repository: "r", Path: "../x", Images: one}, "'..'"},
		"leaves inside":        {Request{Repository: "r", Path: "a/../../x", Images: one}, "'..'"},
		"absolute":             {Request{Repository: "r", Path: "/x", Images: one}, "absolute"},
		"backslash":            {Request{Repository: "r", Path: `a\b`, Images: one}, "backslash"},
		"top":                  {Request{Repository: "r", Path: ".", Images: one}, "--to"},
		"upper case path":      {Request{Repository: "r", Path: "overlays/Staging", Images: one}, "--to"},
		"bad environment":      {Request{Repository: "r", Path: "x", Environment: "a/b", Images: one}, "environment"},
		"bad app":              {Request{Repository: "r", Path: "x", App: "a..b", Images: one}, "app"},
		"too long":             {Request{Repository: "r", Path: "x", App: strings.Repeat("a", 91), Images: one}, "at most 100"},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := identify(c.q)
			if strings.HasPrefix(c.want, "tagboat/") {
				if err != nil || id.Branch != c.want {
					t.Fatalf("got %q, %v; want %q", id.Branch, err, c.want)
				}
				return
			}
			if !errors.Is(err, ErrMisused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want ErrMisused with %q", err, c.want)
			}
		})
	}
}

func TestClash(t *testing.T) {
	const fork = "images:\n- name: web\n  newTag: v1\n- name: worker\n  newTag: v1\n"
	web2 := strings.Replace(fork, "web\n  newTag: v1", "web\n  newTag: v2", 1)
	web3 := strings.Replace(fork, "web\n  newTag: v1", "web\n  newTag: v3", 1)
	worker2 := strings.Replace(fork, "worker\n  newTag: v1", "worker\n  newTag: v2", 1)
	for _, c := range []struct {
		name         string
		ours, theirs string
		want         bool
	}{
		{"base did not move", fork, web2, false},
		{"the same change", web2, web2, false},
		{"another value", web3, web2, true},
		{"another entry", worker2, web2, false},
		{"the neighbouring line", strings.Replace(fork, "- name: worker", "- name: other", 1), web2, true},
		{"a line put in elsewhere", "# by mei\n" + fork, web2, false},
		{"entry gone", "images: []\n", web2, true},
	} {
		if got := clash([]byte(fork), []byte(c.ours), []byte(c.theirs)); got != c.want {
			t.Errorf("%s: clash = %v", c.name, got)
		}
	}
}

func TestCode(t *testing.T) {
	for in, want := range map[string]string{
		"v1":                  "`v1`",
		"":                    "",
		"a`b":                 "`` a`b ``",
		"a``b":                "``` a``b ```",
		"a|b":                 "`a\\|b`",
		"@mei [x](http://y)":  "`@mei [x](http://y)`",
		"a\nb\r\u202e\u200bc": "`a b c`",
		"x --> <!-- tagboat:": "`x -- > <! -- tagboat:`",
		"\xff\xfebad":         "`bad`",
		"<img src=x>":         "`<img src=x>`",
	} {
		if got := Code(in); got != want {
			t.Errorf("Code(%q) = %q, want %q", in, got, want)
		}
	}
}
