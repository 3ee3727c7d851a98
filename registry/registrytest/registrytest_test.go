package registrytest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// What PushImage makes is an image to another client, in each of its forms.
func TestPushedImagesAreImages(t *testing.T) {
	two := []string{"linux/amd64", "linux/arm64/v8"}
	for name, test := range map[string]struct {
		spec     ImageSpec
		index    bool
		children int
	}{
		"single":           {ImageSpec{}, false, 0},
		"single, Docker":   {ImageSpec{Docker: true, Platforms: []string{"linux/arm/v7"}}, false, 0},
		"index of one":     {ImageSpec{Index: true}, true, 1},
		"two platforms":    {ImageSpec{Platforms: two, Labels: map[string]string{"a": "b"}, Created: time.Unix(1_700_000_000, 0)}, true, 2},
		"two, Docker":      {ImageSpec{Platforms: two, Docker: true}, true, 2},
		"with attestation": {ImageSpec{Platforms: two, Attested: true, Annotations: map[string]string{"c": "d"}}, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := New()
			defer r.Close()
			digest, err := r.PushImage(r.Host()+"/acme/app:v1", test.spec)
			if err != nil {
				t.Fatal(err)
			}
			ref, err := parse(r.Host() + "/acme/app:v1")
			if err != nil {
				t.Fatal(err)
			}
			got, err := remote.Get(ref)
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest.String() != digest || got.MediaType.IsIndex() != test.index {
				t.Errorf("%s %s, want %s", got.Digest, got.MediaType, digest)
			}
			if !test.index {
				image, err := got.Image()
				if err != nil {
					t.Fatal(err)
				}
				if err := validate.Image(image); err != nil {
					t.Error(err)
				}
				return
			}
			index, err := got.ImageIndex()
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := index.IndexManifest()
			if err != nil || len(manifest.Manifests) != test.children {
				t.Fatalf("%d children, want %d: %v", len(manifest.Manifests), test.children, err)
			}
			checkChildren(t, index, manifest)
		})
	}
}

// checkChildren wants sound platforms, and attestations that name their image.
func checkChildren(t *testing.T, index v1.ImageIndex, manifest *v1.IndexManifest) {
	t.Helper()
	for i, child := range manifest.Manifests {
		image, err := index.Image(child.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if child.Platform.OS == "unknown" {
			if of := child.Annotations["vnd.docker.reference.digest"]; of != manifest.Manifests[i-1].Digest.String() {
				t.Errorf("attestation of %q", of)
			}
			continue
		}
		config, err := image.ConfigFile()
		if err != nil || config.OS != child.Platform.OS || config.Architecture != child.Platform.Architecture || config.Variant != child.Platform.Variant {
			t.Errorf("configuration for %+v, descriptor for %s: %v", config, child.Platform, err)
		}
		if err := validate.Image(image); err != nil {
			t.Error(err)
		}
	}
}

func parse(s string) (name.Reference, error) { return name.ParseReference(s, name.Insecure) }

func TestPushRefusals(t *testing.T) {
	r := New()
	defer r.Close()
	for name, test := range map[string]struct {
		ref  string
		spec ImageSpec
	}{
		"no tag":        {"acme/app", ImageSpec{}},
		"other host":    {"registry.example/acme/app:v1", ImageSpec{}},
		"upper case":    {"Acme/app:v1", ImageSpec{}},
		"bad platform":  {"acme/app:v1", ImageSpec{Platforms: []string{"a/b/c/d/e"}}},
		"bad platforms": {"acme/app:v1", ImageSpec{Platforms: []string{"linux/amd64", "a/b/c/d/e"}}},
	} {
		if digest, err := r.PushImage(test.ref, test.spec); err == nil || digest != "" {
			t.Errorf("%s: %q, %v; want an error", name, digest, err)
		}
	}
}

// Content makes another image; the same spec makes the same one.
func TestPushIsReproducible(t *testing.T) {
	r := New()
	defer r.Close()
	seen := map[string]string{}
	for _, content := range []string{"a", "b", "a"} {
		digest, err := r.PushImage("acme/app:v1", ImageSpec{Content: content, Platforms: []string{"linux/amd64", "linux/arm64"}, Attested: true})
		if err != nil {
			t.Fatal(err)
		}
		for other, is := range seen {
			if (other == content) != (is == digest) {
				t.Errorf("content %q is %s, %q is %s", content, digest, other, is)
			}
		}
		seen[content] = digest
	}
}

// get sends one request, with an Authorization where it is not "".
func get(t *testing.T, url, authorization string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(content)
}

func TestKnobs(t *testing.T) {
	const manifest = "/v2/acme/app/manifests/v1"
	for name, test := range map[string]struct {
		turn   func(*Registry)
		status []int // of requests in a row
		header string
		value  string
		body   string
	}{
		"none":          {nil, []int{200, 200}, "Content-Type", "application/vnd.oci.image.manifest.v1+json", `"schemaVersion":2`},
		"fail once":     {func(r *Registry) { r.Fail(Match{Path: "/manifests/", Times: 1}, 503, "UNAVAILABLE") }, []int{503, 200}, "", "", `"UNAVAILABLE"`},
		"other method":  {func(r *Registry) { r.Fail(Match{Method: "HEAD"}, 405, "UNSUPPORTED") }, []int{200}, "", "", "schemaVersion"},
		"other path":    {func(r *Registry) { r.Fail(Match{Path: "/manifests/v2"}, 500, "") }, []int{200}, "", "", "schemaVersion"},
		"limit":         {func(r *Registry) { r.Limit(Match{}, "7") }, []int{429, 429}, "Retry-After", "7", "TOOMANYREQUESTS"},
		"answer":        {func(r *Registry) { r.Answer(Match{}, "text/html", []byte("<html>")) }, []int{200}, "Content-Type", "text/html", "<html>"},
		"redirect":      {func(r *Registry) { r.Redirect(Match{}, "https://elsewhere.example/") }, []int{307}, "Location", "https://elsewhere.example/", ""},
		"no header":     {func(r *Registry) { r.SetHeader(Match{}, "Docker-Content-Digest", "") }, []int{200}, "Docker-Content-Digest", "", "schemaVersion"},
		"lying header":  {func(r *Registry) { r.SetHeader(Match{}, "Docker-Content-Digest", "sha256:lie") }, []int{200}, "Docker-Content-Digest", "sha256:lie", "schemaVersion"},
		"late":          {func(r *Registry) { r.Delay(Match{}, time.Millisecond) }, []int{200}, "", "", "schemaVersion"},
		"reset":         {func(r *Registry) { r.Fail(Match{}, 500, ""); r.Reset() }, []int{200}, "", "", "schemaVersion"},
		"tag is gone":   {func(r *Registry) { must(t, r.Untag("acme/app", "v1")) }, []int{404}, "", "", "MANIFEST_UNKNOWN"},
		"first one won": {func(r *Registry) { r.Fail(Match{Times: 1}, 401, ""); r.Fail(Match{}, 403, "") }, []int{401, 403}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := New()
			defer r.Close()
			if _, err := r.PushImage("acme/app:v1", ImageSpec{}); err != nil {
				t.Fatal(err)
			}
			if test.turn != nil {
				test.turn(r)
			}
			for i, want := range test.status {
				status, header, body := get(t, r.URL()+manifest, "")
				if status != want {
					t.Errorf("request %d: %d, want %d", i, status, want)
				}
				if i > 0 {
					continue
				}
				if test.header != "" && header.Get(test.header) != test.value {
					t.Errorf("%s is %q, want %q", test.header, header.Get(test.header), test.value)
				}
				if !strings.Contains(body, test.body) {
					t.Errorf("body %q, want %q", body, test.body)
				}
			}
			if n := r.Count("GET", "/manifests/"); n != len(test.status) || len(r.Requests()) != n {
				t.Errorf("%d requests in the log, want %d", n, len(test.status))
			}
			r.Forget()
			if len(r.Requests()) != 0 || r.Peak() != 0 {
				t.Error("Forget did not empty the log")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The fake refuses what real registries refuse.
func TestAuthIsStrict(t *testing.T) {
	r := New(WithToken("acme", "secret"))
	defer r.Close()
	for _, ref := range []string{"acme/app:v1", "acme/other:v1"} {
		if _, err := r.PushImage(ref, ImageSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	basic := "Basic YWNtZTpzZWNyZXQ="
	status, _, body := get(t, r.URL()+"/token?service=registrytest&scope=repository:acme/app:pull", basic)
	var token struct{ Token string }
	if err := json.Unmarshal([]byte(body), &token); err != nil || status != 200 || token.Token == "" {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	for name, test := range map[string]struct {
		path, authorization string
		want                int
	}{
		"ping without":           {"/v2/", "", 401},
		"nothing":                {"/v2/acme/app/manifests/v1", "", 401},
		"token":                  {"/v2/acme/app/manifests/v1", "Bearer " + token.Token, 200},
		"token of another":       {"/v2/acme/other/manifests/v1", "Bearer " + token.Token, 401},
		"invented token":         {"/v2/acme/app/manifests/v1", "Bearer abc", 401},
		"password for a token":   {"/v2/acme/app/manifests/v1", basic, 401},
		"token without password": {"/token?scope=repository:acme/app:pull", "", 401},
		"token, wrong password":  {"/token?scope=repository:acme/app:pull", "Basic YWNtZTp3cm9uZw==", 401},
	} {
		status, header, _ := get(t, r.URL()+test.path, test.authorization)
		if status != test.want {
			t.Errorf("%s: %d, want %d", name, status, test.want)
		}
		if challenge := header.Get("WWW-Authenticate"); test.want == 401 && !strings.HasPrefix(test.path, "/token") && !strings.Contains(challenge, `realm="`+r.URL()+`/token"`) {
			t.Errorf("%s: challenge %q", name, challenge)
		}
	}
	r.ExpireTokens()
	if status, _, _ := get(t, r.URL()+"/v2/acme/app/manifests/v1", "Bearer "+token.Token); status != 401 {
		t.Errorf("expired token: %d", status)
	}
	r.SetPassword("new")
	if status, _, _ := get(t, r.URL()+"/token?scope=x", basic); status != 401 {
		t.Errorf("old password: %d", status)
	}
}

// Another client's handshake works as well.
func TestAuthWithAnotherClient(t *testing.T) {
	for name, option := range map[string]Option{"basic": WithBasic("acme", "secret"), "token": WithToken("acme", "secret")} {
		r := New(option)
		digest, err := r.PushImage("acme/app:v1", ImageSpec{})
		must(t, err)
		ref, err := parse(r.Host() + "/acme/app:v1")
		must(t, err)
		got, err := remote.Get(ref, remote.WithAuth(&authn.Basic{Username: "acme", Password: "secret"}))
		if err != nil || got.Digest.String() != digest {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := remote.Get(ref, remote.WithAuth(&authn.Basic{Username: "acme", Password: "wrong"})); err == nil {
			t.Errorf("%s: a wrong password was taken", name)
		}
		r.Close()
	}
}

// Deleting a child leaves the index, as a clean-up of untagged images does.
func TestDeleteChild(t *testing.T) {
	r := New()
	defer r.Close()
	_, err := r.PushImage("acme/app:v1", ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}})
	must(t, err)
	raw, err := r.Manifest("acme/app", "v1")
	must(t, err)
	var index v1.IndexManifest
	must(t, json.Unmarshal(raw, &index))
	child := index.Manifests[0].Digest.String()
	must(t, r.Delete("acme/app", child))
	if _, err := r.Manifest("acme/app", child); err == nil {
		t.Error("the child is still there")
	}
	if _, err := r.Manifest("acme/app", "v1"); err != nil {
		t.Errorf("the index is gone: %v", err)
	}
	if err := r.Delete("acme/app", child); err == nil {
		t.Error("deleted twice without an error")
	}
}
