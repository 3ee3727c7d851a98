package registry

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tagboat/registry/registrytest"
)

const (
	ociIndex     = "application/vnd.oci.image.index.v1+json"
	ociManifest  = "application/vnd.oci.image.manifest.v1+json"
	dockerImage  = "application/vnd.docker.distribution.manifest.v2+json"
	ociConfig    = "application/vnd.oci.image.config.v1+json"
	someDigest   = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	otherDigest  = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	someConfig   = `"config":{"mediaType":"` + ociConfig + `","digest":"` + someDigest + `"}`
	someManifest = `{"schemaVersion":2,"mediaType":"` + ociManifest + `",` + someConfig + `,"layers":[]}`
)

// What a tag may name besides an image is refused, in words that say what it is.
func TestOnlyImages(t *testing.T) {
	for name, test := range map[string]struct {
		contentType, body, says string
	}{
		"schema 1":            {"application/vnd.docker.distribution.manifest.v1+prettyjws", `{"schemaVersion":1,"name":"acme/app","fsLayers":[],"signatures":[]}`, "schema 1"},
		"schema 1 as JSON":    {"application/json", `{"schemaVersion":1,"fsLayers":[]}`, "schema 1"},
		"Helm chart":          {ociManifest, `{"schemaVersion":2,"config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"` + someDigest + `"},"layers":[]}`, "Helm chart"},
		"cosign signature":    {ociManifest, `{"schemaVersion":2,` + someConfig + `,"layers":[{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":"` + someDigest + `"}]}`, "signature"},
		"sigstore bundle":     {ociManifest, `{"schemaVersion":2,"artifactType":"application/vnd.dev.sigstore.bundle.v0.3+json","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"` + someDigest + `"},"layers":[]}`, "sigstore"},
		"attestation":         {ociManifest, `{"schemaVersion":2,` + someConfig + `,"layers":[{"mediaType":"application/vnd.in-toto+json","digest":"` + someDigest + `"}]}`, "attestation"},
		"login page":          {"text/html; charset=utf-8", "<!DOCTYPE html><html>Sign in</html>", "web page"},
		"page as JSON":        {"application/json", "  <html></html>", "web page"},
		"empty":               {ociManifest, "", "empty"},
		"blank":               {ociManifest, " \n", "empty"},
		"null":                {ociManifest, "null", "schemaVersion"},
		"a list":              {ociManifest, "[]", "no JSON manifest"},
		"broken":              {ociManifest, `{"schemaVersion":2`, "no JSON manifest"},
		"nothing in it":       {ociManifest, `{"schemaVersion":2}`, "does not look it"},
		"other kind":          {"application/json", `{"schemaVersion":2,"mediaType":"application/vnd.oci.artifact.manifest.v1+json","blobs":[]}`, "artifact.manifest"},
		"two kinds at once":   {ociIndex, `{"schemaVersion":2,"manifests":[{"mediaType":"` + ociManifest + `","digest":"` + someDigest + `"}],` + someConfig + `,"layers":[]}`, "at once"},
		"type contradicts":    {ociIndex, someManifest, "calls itself"},
		"index of nothing":    {ociIndex, `{"schemaVersion":2,"manifests":[]}`, "holds no image"},
		"index of artifacts":  {ociIndex, `{"schemaVersion":2,"manifests":[{"mediaType":"` + ociManifest + `","digest":"` + someDigest + `","artifactType":"application/spdx+json"}]}`, "holds no image"},
		"only attestations":   {ociIndex, `{"schemaVersion":2,"manifests":[{"mediaType":"` + ociManifest + `","digest":"` + someDigest + `","platform":{"os":"unknown","architecture":"unknown"}}]}`, "holds no image"},
		"child with a path":   {ociIndex, `{"schemaVersion":2,"manifests":[{"mediaType":"` + ociManifest + `","digest":"../../../v2/other/manifests/latest"}]}`, "digest is none"},
		"config with a path":  {ociManifest, `{"schemaVersion":2,"config":{"mediaType":"` + ociConfig + `","digest":"sha256:../x"},"layers":[]}`, "no digest"},
		"larger than the cap": {ociManifest, `{"schemaVersion":2,` + someConfig + `,"annotations":{"a":"` + strings.Repeat("a", maxManifest) + `"}}`, "larger than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := start(t)
			r.Answer(registrytest.Match{Path: "/manifests/"}, test.contentType, []byte(test.body))
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")})
			if !errors.Is(err, ErrNotImage) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%+v, %v; want ErrNotImage that says %q", got, err, test.says)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("the error has %d characters", len(err.Error()))
			}
		})
	}
}

func TestMediaTypeOfTheBody(t *testing.T) {
	for name, test := range map[string]struct{ contentType, body, want string }{
		"body":                {"application/json", someManifest, ociManifest},
		"body and parameter":  {"", `{"schemaVersion":2,"mediaType":"` + dockerImage + `; charset=utf-8",` + someConfig + `}`, dockerImage},
		"header":              {dockerImage, `{"schemaVersion":2,` + someConfig + `}`, dockerImage},
		"shape of a manifest": {"application/octet-stream", `{"schemaVersion":2,` + someConfig + `}`, ociManifest},
		"shape of an index":   {"", `{"schemaVersion":2,"manifests":[{"mediaType":"` + ociManifest + `","digest":"` + someDigest + `"}]}`, ociIndex},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := start(t)
			r.Answer(registrytest.Match{Path: "/manifests/"}, test.contentType, []byte(test.body))
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")})
			if err != nil || got.MediaType != test.want || got.Reference.Digest != hashOf([]byte(test.body), "") {
				t.Errorf("%+v, %v; want %s", got, err, test.want)
			}
		})
	}
}

// A registry converts, chooses a child or answers 404 where a type is not accepted.
func TestAllTypesAreAccepted(t *testing.T) {
	want := []string{ociIndex, "application/vnd.docker.distribution.manifest.list.v2+json", ociManifest, dockerImage}
	r, c := start(t)
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")}); err != nil {
		t.Fatal(err)
	}
	if got := r.Requests()[1].Accept; got != strings.Join(want, ", ") {
		t.Errorf("Accept: %s, want %v", got, want)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(someManifest), ociManifest)
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"mediaType":"`+ociManifest+`","digest":"`+someDigest+`","platform":{"os":"linux","architecture":"arm64"}}]}`), ociIndex)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		d, err := parseManifest(body, map[string][]string{"Content-Type": {contentType}})
		if err == nil && !d.isIndex() && d.Config == nil {
			t.Fatal("an image without a configuration was accepted")
		}
	})
}
