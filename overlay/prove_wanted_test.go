package overlay

import (
	"slices"
	"testing"

	"tagboat/image"
)

func TestProveWanted(t *testing.T) {
	from := image.Reference{Repository: proveApp, Tag: "v1", Digest: proveOld}
	to := image.Reference{Repository: proveApp, Tag: "v2", Digest: proveNew}
	change := Change{Entry: "todo", From: from, To: to}
	added := Change{Entry: "todo", To: to, Added: true}
	renamed := Change{Entry: "todo", From: image.Reference{Repository: "old.example/todo", Tag: "v1"}, To: to}
	for name, c := range map[string]struct {
		old, new string
		change   Change
		is, runs bool
	}{
		"tag and digest":                   {from.String(), to.String(), change, true, true},
		"from a bare name":                 {"todo", to.String(), change, true, true},
		"digest alone":                     {from.String(), proveApp + "@" + proveNew, change, true, true},
		"added":                            {"todo:stub", to.String(), added, true, true},
		"renamed":                          {"old.example/todo:v1", to.String(), renamed, true, true},
		"a port is no tag":                 {"todo:5000/x", to.String(), change, false, true},
		"another image becomes it":         {"nginx:1.27", to.String(), change, false, true},
		"a tag without its digest":         {from.String(), proveApp + ":v2", change, false, true},
		"another digest":                   {from.String(), proveApp + ":v2@" + proveOld, change, false, true},
		"a copy of the digest":             {proveOld, proveNew, change, true, true},
		"a copy of another digest":         {"sha256:0", proveNew, change, false, false},
		"a copy of the tag":                {"v1", "v2", change, true, false},
		"another value becomes the tag":    {"v0", "v2", change, false, false},
		"a mirror":                         {"mirror.example/todo:v1@" + proveOld, "mirror.example/todo:v2@" + proveNew, change, true, true},
		"a mirror that changes with it":    {"mirror.example/todo:v1", "other.example/todo:v2@" + proveNew, change, false, true},
		"text around it":                   {"run " + from.String(), "run " + to.String(), change, false, true},
		"a repository that the name finds": {"xtodo:v1", "xtodo:v2@" + proveNew, Change{Entry: ".todo", From: from, To: to}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			is, runs := wantedBy(difference{old: c.old, new: c.new}, c.change)
			if is != c.is || is && runs != c.runs {
				t.Errorf("%q becomes %q: %v, runs %v; want %v, %v", c.old, c.new, is, runs, c.is, c.runs)
			}
		})
	}
	for _, d := range []difference{{old: from.String(), new: to.String(), what: "is new"}, {secret: true}} {
		if by, _ := wanted(d, []Change{change}); len(by) > 0 {
			t.Errorf("%+v is wanted", d)
		}
	}
	if by, runs := wanted(difference{old: from.String(), new: to.String()}, []Change{change, {Entry: "else", From: from, To: from}, change}); !slices.Equal(by, []int{0, 2}) || !runs {
		t.Errorf("by %v, %v; want the first and the last", by, runs)
	}
}

func TestProveRemote(t *testing.T) {
	for _, reference := range []string{
		"https://acme.example/x.yaml", "HTTP://acme.example", "http:x", "ssh://git@h/r", "file:///srv/x", "oci://acme.example/x", "git::https://acme.example/x",
		"GIT::git@h:x", "git@github.com:acme/x", "me@host:x", "github.com/acme/x", "GitHub.com:acme/x", " https://acme.example/x", "gitlab.example/acme/x?ref=v1", "base?submodules=false",
	} {
		if !remote(reference) {
			t.Errorf("%q is taken for a path", reference)
		}
	}
	for _, reference := range []string{"base", "../../base", "./x.yaml", "github.com.yaml", "a/github.com/x", "http/x.yaml", "@x", "1a@b", "a:b", "apiVersion: builtin\npath: https://acme.example?ref=x"} {
		if remote(reference) {
			t.Errorf("%q is taken for remote", reference)
		}
	}
}
