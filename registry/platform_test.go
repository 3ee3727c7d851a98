package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tagboat/registry/registrytest"
)

func TestPlatformSpelling(t *testing.T) {
	for text, want := range map[string]string{
		"linux/amd64": "linux/amd64", "linux/amd64/v1": "linux/amd64", "linux/amd64/v3": "linux/amd64/v3",
		"linux/arm64": "linux/arm64", "linux/arm64/v8": "linux/arm64", "linux/arm64/v9": "linux/arm64/v9",
		"linux/arm": "linux/arm/v7", "linux/arm/v7": "linux/arm/v7", "linux/arm/v6": "linux/arm/v6", "Linux/AMD64": "linux/amd64",
		"windows/amd64": "windows/amd64", "linux": "", "linux/": "", "/amd64": "", "a/b/c/d": "", "unknown/unknown": "", "linux/unknown": "",
	} {
		got, err := parsePlatform(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("parsePlatform(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// entry is a child of a hand-made index.
func entry(mediaType, digest, more string) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":1%s}`, mediaType, digest, more)
}

func on(os, arch, variant string) string {
	return fmt.Sprintf(`,"platform":{"os":%q,"architecture":%q,"variant":%q}`, os, arch, variant)
}

func indexOf(entries ...string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[%s]}`, ociIndex, strings.Join(entries, ","))
}

func TestPlatformMatch(t *testing.T) {
	for name, test := range map[string]struct {
		entries  []string
		required string
		has      []string
		want     error
	}{
		"arm64/v8 is arm64":              {[]string{entry(ociManifest, someDigest, on("linux", "arm64", "v8"))}, "linux/arm64", []string{"linux/arm64"}, nil},
		"arm64 is arm64/v8":              {[]string{entry(ociManifest, someDigest, on("linux", "arm64", ""))}, "linux/arm64/v8", []string{"linux/arm64"}, nil},
		"arm is arm/v7":                  {[]string{entry(ociManifest, someDigest, on("linux", "arm", "v7"))}, "linux/arm", []string{"linux/arm/v7"}, nil},
		"arm/v6 is not arm":              {[]string{entry(ociManifest, someDigest, on("linux", "arm", "v6"))}, "linux/arm", []string{"linux/arm/v6"}, ErrPlatform},
		"no platform is not linux/amd64": {[]string{entry(ociManifest, someDigest, "")}, "linux/amd64", nil, ErrPlatform},
		"an attestation is no platform":  {[]string{entry(ociManifest, someDigest, on("linux", "arm64", "")), entry(ociManifest, otherDigest, on("linux", "amd64", "")+`,"annotations":{"vnd.docker.reference.type":"attestation-manifest"}`)}, "linux/amd64", []string{"linux/arm64"}, ErrPlatform},
		"an artifact is no platform":     {[]string{entry(ociManifest, someDigest, on("linux", "arm64", "")), entry(ociManifest, otherDigest, on("linux", "amd64", "")+`,"artifactType":"application/spdx+json"`)}, "linux/amd64", []string{"linux/arm64"}, ErrPlatform},
		"another kind is no platform":    {[]string{entry(ociManifest, someDigest, on("linux", "arm64", "")), entry("application/octet-stream", otherDigest, on("linux", "amd64", ""))}, "linux/amd64", []string{"linux/arm64"}, ErrPlatform},
		"zstd twins":                     {[]string{entry(ociManifest, someDigest, on("linux", "amd64", "")), entry(ociManifest, otherDigest, on("linux", "amd64", ""))}, "linux/amd64", []string{"linux/amd64"}, nil},
		"go-containerregistry's type":    {[]string{entry(ociManifest, someDigest, on("linux", "amd64", "")+`,"artifactType":"`+ociConfig+`"`)}, "linux/amd64", []string{"linux/amd64"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := start(t)
			body := indexOf(test.entries...)
			r.Answer(registrytest.Match{Path: "/manifests/v1"}, ociIndex, []byte(body))
			r.Answer(registrytest.Match{Method: "HEAD", Path: "/manifests/sha256:"}, ociManifest, nil)
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1"), Platforms: []string{test.required}})
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if err == nil && !slices.Equal(got.Platforms, test.has) {
				t.Errorf("platforms %v, want %v", got.Platforms, test.has)
			}
			for _, has := range test.has {
				if err != nil && !strings.Contains(err.Error(), has) {
					t.Errorf("the error does not name what there is: %v", err)
				}
			}
		})
	}
}

// A clean-up of untagged images deletes children under a living index.
func TestChildIsGone(t *testing.T) {
	r, c := start(t)
	ref := r.Host() + "/acme/app:v1"
	push(t, r, ref, registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}})
	child := children(t, r, ref)["linux/arm64"]
	if err := r.Delete("acme/app", child); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{"linux/amd64"}}); err != nil {
		t.Errorf("the platform that is there: %v", err)
	}
	_, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{"linux/amd64", "linux/arm64"}})
	if !errors.Is(err, ErrPlatform) || !strings.Contains(err.Error(), child) || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("%v, want ErrPlatform with %s", err, child)
	}
}

func TestConfigurationIsGone(t *testing.T) {
	r, c := start(t)
	ref := r.Host() + "/acme/app:v1"
	push(t, r, ref, registrytest.ImageSpec{})
	r.Fail(registrytest.Match{Path: "/blobs/"}, 404, "BLOB_UNKNOWN")
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{"linux/amd64"}}); !errors.Is(err, ErrPlatform) {
		t.Errorf("%v, want ErrPlatform", err)
	}
	r.Reset()
	r.Answer(registrytest.Match{Path: "/blobs/"}, "", []byte(`{"os":"linux","architecture":"amd64"}`))
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{"linux/amd64"}}); !errors.Is(err, ErrDigestMismatch) {
		t.Errorf("another configuration than the manifest's: %v, want ErrDigestMismatch", err)
	}
}

// buildx makes index -> index per platform -> manifest and attestation.
func TestNestedIndexes(t *testing.T) {
	r, c := start(t)
	ref := r.Host() + "/acme/app"
	put := func(body string) string {
		t.Helper()
		digest, err := r.PushManifest("acme/app", hashOf([]byte(body), ""), ociIndex, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	push(t, r, ref+":parts", registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}})
	parts := children(t, r, ref+":parts")
	amd := put(indexOf(entry(ociManifest, parts["linux/amd64"], on("linux", "amd64", ""))))
	arm := put(indexOf(entry(ociManifest, parts["linux/arm64"], on("linux", "arm64", "v8"))))
	deep := put(indexOf(entry(ociIndex, arm, "")))
	deeper := put(indexOf(entry(ociIndex, deep, "")))
	for name, test := range map[string]struct {
		body     string
		platform string
		has      []string
		requests int
		want     error
	}{
		"platform on the index":       {indexOf(entry(ociIndex, amd, on("linux", "amd64", "")), entry(ociIndex, arm, on("linux", "arm64", ""))), "linux/arm64", []string{"linux/amd64", "linux/arm64"}, 3, nil},
		"platform only inside":        {indexOf(entry(ociIndex, amd, ""), entry(ociIndex, arm, "")), "linux/arm64", []string{"linux/amd64", "linux/arm64"}, 4, nil},
		"third level":                 {indexOf(entry(ociIndex, deep, "")), "linux/arm64", []string{"linux/arm64"}, 4, nil},
		"fourth level is not read":    {indexOf(entry(ociIndex, deeper, "")), "linux/arm64", nil, 3, ErrPlatform},
		"outer platform is not inner": {indexOf(entry(ociIndex, amd, on("linux", "arm64", ""))), "linux/arm64", nil, 2, ErrPlatform},
	} {
		t.Run(name, func(t *testing.T) {
			c.manifests = &memory{}
			digest, err := r.PushManifest("acme/app", "v1", ociIndex, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Forget()
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref+":v1"), Platforms: []string{test.platform}})
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if err == nil && (got.Reference.Digest != digest || !slices.Equal(got.Platforms, test.has)) {
				t.Errorf("%+v", got)
			}
			if n := r.Count("", "/manifests/"); n != test.requests {
				t.Errorf("%d requests, want %d: %v", n, test.requests, r.Requests())
			}
		})
	}
}

func TestNestedIndexesAreBounded(t *testing.T) {
	r, c := start(t)
	var entries []string
	for i := range 100 {
		entries = append(entries, entry(ociIndex, fmt.Sprintf("sha256:%064d", i), ""))
	}
	r.Answer(registrytest.Match{Path: "/manifests/v1"}, ociIndex, []byte(indexOf(entries...)))
	r.Answer(registrytest.Match{Path: "/manifests/sha256:"}, ociIndex, []byte(indexOf(entries...)))
	_, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")})
	if err == nil || c.Requests() > maxNested+2 {
		t.Errorf("%v after %d requests", err, c.Requests())
	}
}

// The nested index is gone: an error where a platform needs it, a warning else.
func TestNestedIndexIsGone(t *testing.T) {
	r, c := start(t)
	r.Answer(registrytest.Match{Path: "/manifests/v1"}, ociIndex, []byte(indexOf(entry(ociManifest, someDigest, on("linux", "amd64", "")), entry(ociIndex, otherDigest, ""))))
	q := Query{Reference: reference(t, r.Host()+"/acme/app:v1")}
	got, err := c.Resolve(context.Background(), q)
	if err != nil || len(got.Warnings) != 1 || !slices.Equal(got.Platforms, []string{"linux/amd64"}) {
		t.Errorf("%+v, %v", got, err)
	}
	q.Platforms = []string{"linux/arm64"}
	if _, err := c.Resolve(context.Background(), q); !errors.Is(err, ErrPlatform) || !strings.Contains(err.Error(), otherDigest) {
		t.Errorf("a required platform may be in the index that is gone: %v", err)
	}
}
