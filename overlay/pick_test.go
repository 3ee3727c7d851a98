package overlay

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPick(t *testing.T) {
	entries := []Entry{
		{Dir: "o", File: "o/kustomization.yaml", Line: 2, Name: "web", NewName: "ghcr.io/acme/todo"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 4, Name: "ghcr.io/acme/todo"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 6, Name: "worker", NewName: "ghcr.io/acme/todo"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 8, Name: "nginx"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 10, Name: "ghcr.io/acme/api", NewName: "mirror.example/acme/api"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 12, Name: "db", NewName: "docker.io/library/postgres"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 14, Name: "cache", NewName: "redis"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 16, Name: "spare", NewName: "docker.io/library/redis"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 18, Name: "PROJECT/IMAGE"},
		{Dir: "o", File: "o/kustomization.yaml", Line: 20, Name: "admin", NewName: "ghcr.io/acme/admin:v1"},
	}
	for name, c := range map[string]struct {
		want  Want
		names string // of the picked, joined by blanks
	}{
		"all whose newName it is":           {Want{Repository: "ghcr.io/acme/todo"}, "web worker"},
		"the one that is named":             {Want{Repository: "ghcr.io/acme/todo", Name: "worker"}, "worker"},
		"a name wins over the repository":   {Want{Repository: "ghcr.io/acme/todo", Name: "ghcr.io/acme/api"}, "ghcr.io/acme/api"},
		"the name, where it has no newName": {Want{Repository: "nginx"}, "nginx"},
		"the name in another spelling":      {Want{Repository: "docker.io/library/nginx"}, "nginx"},
		"newName in another spelling":       {Want{Repository: "postgres"}, "db"},
		"the literal newName first":         {Want{Repository: "redis"}, "cache"},
		"the literal newName first, longer": {Want{Repository: "docker.io/library/redis"}, "spare"},
		"a mirror's name":                   {Want{Repository: "mirror.example/acme/api"}, "ghcr.io/acme/api"},
		"a tag inside newName":              {Want{Repository: "ghcr.io/acme/admin"}, "admin"},
		"an opaque name":                    {Want{Name: "PROJECT/IMAGE"}, "PROJECT/IMAGE"},
		"found, so that none is added":      {Want{Repository: "nginx", Add: true}, "nginx"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Pick(entries, c.want)
			var names []string
			for _, e := range got {
				names = append(names, e.Name)
			}
			if err != nil || strings.Join(names, " ") != c.names {
				t.Errorf("Pick: %q, %v; want %q", names, err, c.names)
			}
		})
	}
	for name, c := range map[string]struct {
		want Want
		says []string
	}{
		"the name of one that has a newName": {Want{Repository: "ghcr.io/acme/api"}, []string{"for ghcr.io/acme/api", "did you mean ghcr.io/acme/api (line 10)?", "line 10: ghcr.io/acme/api (newName mirror.example/acme/api)"}},
		"a slip":                             {Want{Repository: "ghcr.io/acme/tado"}, []string{"o/kustomization.yaml", "did you mean ghcr.io/acme/todo (line 2)?", "line 8: nginx"}},
		"a name in another spelling":         {Want{Repository: "nginx", Name: "docker.io/library/nginx"}, []string{"for docker.io/library/nginx", "did you mean nginx (line 8)?"}},
		"a name in another case":             {Want{Name: "project/image"}, []string{"line 18: PROJECT/IMAGE"}},
		"nothing near":                       {Want{Repository: "quay.example/zzz/yyy-xxx-www"}, []string{"line 2: web (newName ghcr.io/acme/todo)"}},
		"a mirror only by its base":          {Want{Repository: "other.example/acme/api", Name: ""}, []string{"did you mean ghcr.io/acme/api (line 10)?"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Pick(entries, c.want)
			if !errors.Is(err, ErrNoEntry) || len(got) > 0 {
				t.Fatalf("Pick: %+v, %v; want ErrNoEntry", got, err)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q; want it to say %q", err, want)
				}
			}
			if name == "nothing near" && strings.Contains(err.Error(), "did you mean") {
				t.Errorf("error %q suggests what is not near", err)
			}
		})
	}
	if _, err := Pick(nil, Want{Repository: "app"}); !errors.Is(err, ErrNoEntry) || !strings.Contains(err.Error(), "there are no images entries") {
		t.Errorf("Pick from nothing: %v", err)
	}
	if _, err := Pick(entries, Want{}); err == nil {
		t.Error("Pick of nothing: no error")
	}
}

func TestPickAdds(t *testing.T) {
	there := []Entry{{Dir: "o", File: "o/kustomization.yaml", Line: 2, Name: "web"}}
	for name, c := range map[string]struct {
		entries []Entry
		want    Want
		added   Entry
	}{
		"by its repository": {there, Want{Repository: "r.example/app", Add: true}, Entry{Dir: "o", File: "o/kustomization.yaml", Name: "r.example/app"}},
		"by a name":         {there, Want{Repository: "r.example/app", Name: "app", Add: true}, Entry{Dir: "o", File: "o/kustomization.yaml", Name: "app", NewName: "r.example/app"}},
		"by the same name":  {there, Want{Repository: "app", Name: "app", Add: true}, Entry{Dir: "o", File: "o/kustomization.yaml", Name: "app"}},
		"to nothing":        {nil, Want{Repository: "app", Add: true, Dir: "o"}, Entry{Dir: "o", Name: "app"}},
	} {
		got, err := Pick(c.entries, c.want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]Entry{c.added}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRuns(t *testing.T) {
	for want, e := range map[string]Entry{
		"app":                  {Name: "app"},
		"app:v1@" + oldDigest:  {Name: "app", Tag: "v1", Digest: oldDigest},
		"r.example:5000/app:1": {Name: "app", NewName: "r.example:5000/app", Tag: "1"},
		"app:v2":               {Name: "app:latest", Tag: "v2"},
		"r/app:v3":             {Name: "app", NewName: "r/app:v3"},
		"r/app:v4":             {Name: "app", NewName: "r/app:v3", Tag: "v4"},
		"r/app@" + oldDigest:   {Name: "app", NewName: "r/app:v3@" + newDigest, Digest: oldDigest},
	} {
		if got := e.Runs().String(); got != want {
			t.Errorf("%+v runs %s; want %s", e, got, want)
		}
	}
}

func TestMay(t *testing.T) {
	const name = "registry.example/acme/todo-api"
	for entry, want := range map[string]bool{
		name: true, name + ":v1": true, name + "@sha256:1": true, "registry.example.acme.todo-api": true, name + ".v1": true, ".*": true, "web|" + name: true,
		"todo-api": false, name + "-worker": false, name + "2": false, "registry.example/acme/todo-web": false,
		"{{ .Image }}": false, "${IMAGE}": false, "$(IMAGE)/todo": false, "[": false,
	} {
		if got := (Entry{Name: entry}).May(name); got != want {
			t.Errorf("%s: %v, want %v", entry, got, want)
		}
	}
}
