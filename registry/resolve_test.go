package registry

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
	"tagboat/registry/registrytest"
)

func TestResolveIndex(t *testing.T) {
	r, c := start(t)
	ref := r.Host() + "/acme/todo-api:v1.0.0"
	digest := push(t, r, ref, registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64/v8"}, Attested: true})
	got, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{"linux/arm64", "linux/amd64"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Image{
		Reference: reference(t, ref+"@"+digest),
		MediaType: "application/vnd.oci.image.index.v1+json",
		Platforms: []string{"linux/amd64", "linux/arm64"},
		Checked:   []string{"linux/arm64", "linux/amd64"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(r.Requests()); n != 4 || c.Requests() != 4 { // ping, GET, two HEADs
		t.Errorf("%d requests arrived, %d counted: %v", n, c.Requests(), r.Requests())
	}
	if err := c.Exists(context.Background(), got.Reference); err != nil {
		t.Error(err)
	}
	if err := c.Exists(context.Background(), reference(t, r.Host()+"/acme/todo-api@sha256:"+digest[8:70]+"00")); !errors.Is(err, ErrNotFound) {
		t.Errorf("Exists of another digest = %v, want ErrNotFound", err)
	}
}

func TestResolveSingle(t *testing.T) {
	for name, spec := range map[string]registrytest.ImageSpec{
		"OCI":    {Platforms: []string{"linux/arm64/v8"}},
		"Docker": {Platforms: []string{"linux/arm64/v8"}, Docker: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := start(t)
			ref := r.Host() + "/acme/app:v1"
			digest := push(t, r, ref, spec)
			for platform, want := range map[string]error{"linux/arm64": nil, "linux/amd64": ErrPlatform} {
				got, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{platform}})
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", platform, err, want)
				}
				if err == nil && (got.Reference.Digest != digest || !slices.Equal(got.Platforms, []string{"linux/arm64"}) || len(got.Checked) != 1) {
					t.Errorf("%s: %+v", platform, got)
				}
			}
			if n := r.Count("", ""); n != 4 { // ping, GET, configuration; GET
				t.Errorf("%d requests: %v", n, r.Requests())
			}
		})
	}
}

// The registry's answer is not to be believed where the body says otherwise.
func TestDigestIsOfTheBody(t *testing.T) {
	const lie = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, test := range map[string]struct {
		turn func(*registrytest.Registry)
		want error
	}{
		"header missing": {func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/"}, "Docker-Content-Digest", "")
		}, nil},
		"header lies": {func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/"}, "Docker-Content-Digest", lie)
		}, ErrDigestMismatch},
		"header is junk": {func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/"}, "Docker-Content-Digest", "junk")
		}, ErrDigestMismatch},
		"no HEAD":        {func(r *registrytest.Registry) { r.Fail(registrytest.Match{Method: "HEAD"}, 405, "UNSUPPORTED") }, nil},
		"HEAD forbidden": {func(r *registrytest.Registry) { r.Fail(registrytest.Match{Method: "HEAD"}, 403, "DENIED") }, nil},
		"type has charset": {func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/"}, "Content-Type", "application/vnd.oci.image.index.v1+json; charset=utf-8")
		}, nil},
		"type is JSON": {func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/v1"}, "Content-Type", "application/json")
		}, nil},
		"type contradicts": {func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/v1"}, "Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}, ErrNotImage},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := start(t)
			ref := r.Host() + "/acme/app:v1"
			digest := push(t, r, ref, registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}})
			test.turn(r)
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{"linux/arm64"}})
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if test.want == nil && got.Reference.Digest != digest {
				t.Errorf("digest %s, want %s", got.Reference.Digest, digest)
			}
		})
	}
}

func TestResolveGivenDigest(t *testing.T) {
	r, c := start(t)
	repository := r.Host() + "/acme/app"
	old := push(t, r, repository+":v1", registrytest.ImageSpec{Content: "old"})
	now := push(t, r, repository+":v1", registrytest.ImageSpec{Content: "new"})
	const absent = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	raw, err := r.Manifest(repository, "v1")
	if err != nil {
		t.Fatal(err)
	}
	long := hashOf(raw, "sha512:")
	for name, test := range map[string]struct {
		ref     string
		moved   bool
		want    error
		digest  string
		says    []string
		warns   string
		request int
	}{
		"digest alone":                {ref: "@" + old, digest: old, request: 1},
		"tag agrees":                  {ref: ":v1@" + now, digest: now, request: 1},
		"tag agrees, sha512":          {ref: ":v1@" + long, digest: long, request: 1},
		"tag moved":                   {ref: ":v1@" + old, want: ErrMovedTag, says: []string{old, now, "--allow-moved-tag"}, request: 2},
		"tag moved, allowed":          {ref: ":v1@" + old, moved: true, digest: old, warns: now, request: 2},
		"tag gone":                    {ref: ":v0@" + old, want: ErrMovedTag, says: []string{"v0", "not there", old}, request: 2},
		"tag gone, allowed":           {ref: ":v0@" + old, moved: true, digest: old, warns: "not there", request: 2},
		"digest absent":               {ref: "@" + absent, want: ErrNotFound, says: []string{absent}, request: 1},
		"digest absent, tag there":    {ref: ":v1@" + absent, want: ErrNotFound, says: []string{absent, now}, request: 2},
		"digest and tag absent":       {ref: ":v0@" + absent, want: ErrNotFound, says: []string{"v0"}, request: 2},
		"digest absent, moved may be": {ref: ":v1@" + absent, moved: true, want: ErrNotFound, says: []string{absent}, request: 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.Requests()
			if before == 0 {
				before = 1 // the ping
			}
			c.manifests = &memory{}
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, repository+test.ref), AllowMoved: test.moved})
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if got.Reference.Digest != test.digest {
				t.Errorf("digest %q, want %q", got.Reference.Digest, test.digest)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error does not name %q: %v", part, err)
				}
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, test.warns) || (test.warns == "" && warnings != "") {
				t.Errorf("warnings %q, want %q", warnings, test.warns)
			}
			if n := c.Requests() - before; n != test.request {
				t.Errorf("%d requests, want %d", n, test.request)
			}
		})
	}
}

func TestDockerHubHeadIsEnough(t *testing.T) {
	hub := registrytest.New(registrytest.WithToken("acme", "secret-password"), registrytest.WithAnonymousPull(), registrytest.WithRealm("https://auth.docker.io/token"))
	defer hub.Close()
	digest := push(t, hub, "library/nginx:1.27", registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}})
	const other = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, test := range map[string]struct {
		ref   string
		turn  func()
		pins  []string
		heads int
		gets  int
	}{
		"pinned":            {"nginx:1.27", nil, []string{other, digest}, 1, 0},
		"pinned and given":  {"nginx:1.27@" + digest, nil, []string{digest}, 1, 0},
		"pinned elsewhere":  {"nginx:1.27", nil, []string{other}, 1, 1},
		"nothing pinned":    {"nginx:1.27", nil, nil, 0, 1},
		"HEAD says nothing": {"nginx:1.27", func() { hub.SetHeader(registrytest.Match{Method: "HEAD"}, "Docker-Content-Digest", "") }, []string{digest}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer hub.Reset()
			hub.Forget()
			if test.turn != nil {
				test.turn()
			}
			c := newClient(t, Options{base: elsewhere{"index.docker.io": hub.URL(), "auth.docker.io": hub.URL()}})
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, test.ref), Pinned: test.pins})
			if err != nil || got.Reference.Digest != digest || got.Reference.Repository != "nginx" {
				t.Errorf("%+v, %v", got, err)
			}
			if heads, gets := hub.Count("HEAD", "/manifests/"), hub.Count("GET", "/manifests/"); heads != test.heads || gets != test.gets {
				t.Errorf("%d HEADs and %d GETs of manifests, want %d and %d", heads, gets, test.heads, test.gets)
			}
		})
	}
}

func TestPinnedChildIsSaid(t *testing.T) {
	r, c := start(t)
	ref := r.Host() + "/acme/app:v1"
	index := push(t, r, ref, registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}})
	child := children(t, r, ref)["linux/amd64"]
	got, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Pinned: []string{child}})
	if err != nil || got.Reference.Digest != index {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], child) || !strings.Contains(got.Warnings[0], "linux/amd64") {
		t.Errorf("warnings %q", got.Warnings)
	}
}

func TestWait(t *testing.T) {
	for name, test := range map[string]struct {
		missing int // how many 404s
		code    int
		wait    time.Duration
		want    error
		slept   time.Duration // at most
	}{
		"replicated in time": {missing: 4, code: 404, wait: 2 * time.Minute, slept: 9 * time.Second},
		"typo":               {missing: 1000, code: 404, wait: 30 * time.Second, want: ErrNotFound, slept: 30 * time.Second},
		"typo, no wait":      {missing: 1000, code: 404, want: ErrNotFound},
		"denied is final":    {missing: 1000, code: 403, wait: time.Minute, want: ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := start(t)
			time := newClock()
			c := newClient(t, Options{Now: time.Now, Sleep: time.Sleep})
			ref := r.Host() + "/acme/app:v1"
			push(t, r, ref, registrytest.ImageSpec{})
			r.Fail(registrytest.Match{Path: "/manifests/", Times: test.missing}, test.code, "MANIFEST_UNKNOWN")
			_, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Wait: test.wait})
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if time.total() > test.slept || (test.wait > 0 && errors.Is(test.want, ErrNotFound) && time.total() != test.wait) {
				t.Errorf("waited %s, want %s", time.total(), test.slept)
			}
		})
	}
}

func TestQueryIsChecked(t *testing.T) {
	c := newClient(t, Options{})
	for name, q := range map[string]Query{
		"neither tag nor digest": {Reference: image.Reference{Repository: "ghcr.io/acme/app"}},
		"no repository":          {Reference: image.Reference{Tag: "v1"}},
		"bad tag":                {Reference: image.Reference{Repository: "ghcr.io/acme/app", Tag: "a/../b"}},
		"bad digest":             {Reference: image.Reference{Repository: "ghcr.io/acme/app", Digest: "sha256:abc"}},
		"bad platform":           {Reference: image.Reference{Repository: "ghcr.io/acme/app", Tag: "v1"}, Platforms: []string{"linux"}},
		"unknown platform":       {Reference: image.Reference{Repository: "ghcr.io/acme/app", Tag: "v1"}, Platforms: []string{"unknown/unknown"}},
	} {
		if _, err := c.Resolve(context.Background(), q); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if c.Requests() != 0 {
		t.Errorf("%d requests for queries that are wrong in themselves", c.Requests())
	}
}

func TestMutableTags(t *testing.T) {
	for tag, want := range map[string]bool{
		"latest": true, "main": true, "Latest": true, "dev": true, "stable-alpine": true, "prod": true,
		"v1.4.2": false, "1": false, "main-4f5e6d7": false, "sha-abcdef0": false, "deadbeef": false, "": false,
	} {
		if got := len(mutableTag(tag)) == 1; got != want {
			t.Errorf("mutableTag(%q) warns: %v, want %v", tag, got, want)
		}
	}
}

func TestExists(t *testing.T) {
	const absent = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	page := []byte("<html>log in</html>")
	for name, test := range map[string]struct {
		turn   func(*registrytest.Registry)
		digest string
		want   error
		gets   int
	}{
		"there":   {want: nil},
		"absent":  {digest: absent, want: ErrNotFound, gets: 1},
		"no HEAD": {turn: func(r *registrytest.Registry) { r.Fail(registrytest.Match{Method: "HEAD"}, 405, "") }, gets: 1},
		"no header, manifest type": {turn: func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/"}, "Docker-Content-Digest", "")
		}},
		"header lies": {turn: func(r *registrytest.Registry) {
			r.SetHeader(registrytest.Match{Path: "/manifests/"}, "Docker-Content-Digest", absent)
		}, want: ErrDigestMismatch, gets: 1},
		"web page": {turn: func(r *registrytest.Registry) { r.Answer(registrytest.Match{Path: "/manifests/"}, "text/html", page) }, want: ErrNotImage, gets: 1},
		"another manifest than asked": {turn: func(r *registrytest.Registry) {
			r.Answer(registrytest.Match{Path: "/manifests/"}, "", []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"`+absent+`"}}`))
		}, want: ErrDigestMismatch, gets: 1},
		"server down": {turn: func(r *registrytest.Registry) { r.Fail(registrytest.Match{Path: "/manifests/"}, 503, "") }, want: ErrUnavailable, gets: -1},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := start(t)
			digest := push(t, r, "acme/app:v1", registrytest.ImageSpec{})
			if test.digest != "" {
				digest = test.digest
			}
			if test.turn != nil {
				test.turn(r)
			}
			err := c.Exists(context.Background(), reference(t, r.Host()+"/acme/app@"+digest))
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if gets := r.Count("GET", "/manifests/"); test.gets >= 0 && gets != test.gets {
				t.Errorf("%d GETs, want %d", gets, test.gets)
			}
		})
	}
	c := newClient(t, Options{})
	if err := c.Exists(context.Background(), image.Reference{Repository: "ghcr.io/acme/app", Tag: "v1"}); err == nil {
		t.Error("Exists of a reference without a digest: no error")
	}
}

// children are the digests of an index's images by platform.
func children(t *testing.T, r *registrytest.Registry, ref string) map[string]string {
	t.Helper()
	parsed := reference(t, ref)
	raw, err := r.Manifest(parsed.Repository, parsed.Tag)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, child := range d.Manifests {
		found[child.Platform.String()] = child.Digest
	}
	return found
}
