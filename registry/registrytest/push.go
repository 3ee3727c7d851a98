package registrytest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tagboat/image"
)

// ImageSpec is an image to push. The zero value is one for linux/amd64 without
// any text.
type ImageSpec struct {
	Platforms   []string          // os/arch[/variant]; several make an index, as does Index
	Index       bool              // an index even for one platform
	Attested    bool              // each platform has a provenance attestation beside it, as buildx makes
	Docker      bool              // Docker's media types instead of OCI's
	Labels      map[string]string // in the configurations
	Annotations map[string]string // of what the tag names: the index, or the manifest
	Created     time.Time         // in the configurations
	Content     string            // makes the image differ from others; part of its one layer
}

// PushImage makes the image and stores it under ref, whose host must be this
// registry's or left out. It returns the digest of what the tag then names. It
// goes past log, knobs and auth.
func (r *Registry) PushImage(ref string, spec ImageSpec) (digest string, err error) {
	parsed, err := image.Parse(strings.TrimPrefix(ref, r.Host()+"/"))
	if err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	if parsed.Tag == "" {
		return "", fmt.Errorf("push %s: give a tag", ref)
	}
	if first, _, found := strings.Cut(parsed.Repository, "/"); found && strings.ContainsAny(first, ".:") {
		return "", fmt.Errorf("push %s: this registry is %s", ref, r.Host())
	}
	p := &pusher{r: r, repository: parsed.Repository}
	if len(spec.Platforms) == 0 {
		spec.Platforms = []string{"linux/amd64"}
	}
	if len(spec.Platforms) == 1 && !spec.Index && !spec.Attested {
		digest = p.single(spec, parsed.Tag)
	} else {
		digest = p.index(spec, parsed.Tag)
	}
	if p.err != nil {
		return "", fmt.Errorf("push %s: %w", ref, p.err)
	}
	return digest, nil
}

// PushManifest stores raw bytes as a manifest under a tag or digest, with the
// media type given, whatever they are; for what an image is not. The registry
// checks only what go-containerregistry's does.
func (r *Registry) PushManifest(repository, reference, mediaType string, body []byte) (digest string, err error) {
	p := &pusher{r: r, repository: strings.TrimPrefix(repository, r.Host()+"/")}
	p.put(reference, mediaType, body)
	return digestOf(body), p.err
}

// PushBlob stores a blob.
func (r *Registry) PushBlob(repository string, body []byte) (digest string, err error) {
	p := &pusher{r: r, repository: strings.TrimPrefix(repository, r.Host()+"/")}
	return p.blob(body), p.err
}

// pusher writes to one repository and keeps the first error.
type pusher struct {
	r          *Registry
	repository string
	err        error
}

// index pushes each platform's image, and an index of them under the tag.
func (p *pusher) index(spec ImageSpec, tag string) string {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	if spec.Docker {
		index = mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	}
	for _, platform := range spec.Platforms {
		parsed, err := v1.ParsePlatform(platform)
		p.keep(err)
		child := p.image(spec, platform)
		digest := p.pushImage(child, "")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: child, Descriptor: v1.Descriptor{Platform: parsed}})
		if spec.Attested {
			attestation := p.attestation(digest)
			p.pushImage(attestation, "")
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{
				Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
				Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest},
			}})
		}
	}
	if len(spec.Annotations) > 0 {
		index = mutate.Annotations(index, spec.Annotations).(v1.ImageIndex)
	}
	raw, err := index.RawManifest()
	p.keep(err)
	mediaType, err := index.MediaType()
	p.keep(err)
	p.put(tag, string(mediaType), raw)
	return digestOf(raw)
}

func (p *pusher) single(spec ImageSpec, tag string) string {
	made := p.image(spec, spec.Platforms[0])
	if len(spec.Annotations) > 0 {
		made = mutate.Annotations(made, spec.Annotations).(v1.Image)
	}
	return p.pushImage(made, tag)
}

// image makes one platform's image, with one small layer.
func (p *pusher) image(spec ImageSpec, platform string) v1.Image {
	parsed, err := v1.ParsePlatform(platform)
	if p.keep(err) {
		return empty.Image
	}
	layer, config := types.OCILayer, types.OCIConfigJSON
	made := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	if spec.Docker {
		layer, config = types.DockerLayer, types.DockerConfigJSON
		made = mutate.MediaType(empty.Image, types.DockerManifestSchema2)
	}
	made = mutate.ConfigMediaType(made, config)
	archive := p.tar("content", platform+"\n"+spec.Content)
	content, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }, tarball.WithMediaType(layer), tarball.WithCompressionLevel(gzip.NoCompression))
	if p.keep(err) {
		return empty.Image
	}
	made, err = mutate.AppendLayers(made, content)
	if p.keep(err) {
		return empty.Image
	}
	file, err := made.ConfigFile()
	if p.keep(err) {
		return empty.Image
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = parsed.OS, parsed.Architecture, parsed.Variant
	file.Config.Labels = spec.Labels
	file.Created = v1.Time{Time: spec.Created}
	made, err = mutate.ConfigFile(made, file)
	if p.keep(err) {
		return empty.Image
	}
	return made
}

// tar is an archive of one file; without times, so that the digest stays the same.
func (p *pusher) tar(name, content string) []byte {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	p.keep(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
	_, err := w.Write([]byte(content))
	p.keep(err)
	p.keep(w.Close())
	return buffer.Bytes()
}

// attestation is a provenance statement for a digest, as buildx stores it: without
// a signature.
func (p *pusher) attestation(digest string) v1.Image {
	statement := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v0.1","predicateType":"https://slsa.dev/provenance/v0.2","subject":[{"digest":{"sha256":%q}}]}`, strings.TrimPrefix(digest, "sha256:"))
	made := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	made, err := mutate.Append(made, mutate.Addendum{MediaType: "application/vnd.in-toto+json", Layer: static.NewLayer([]byte(statement), "application/vnd.in-toto+json")})
	if p.keep(err) {
		return empty.Image
	}
	return made
}

// pushImage stores an image's blobs and its manifest, under the tag or, where that
// is "", under the digest alone.
func (p *pusher) pushImage(made v1.Image, tag string) string {
	if p.err != nil {
		return ""
	}
	layers, err := made.Layers()
	p.keep(err)
	for _, layer := range layers {
		content, err := layer.Compressed()
		p.keep(err)
		var buffer bytes.Buffer
		_, err = buffer.ReadFrom(content)
		p.keep(err)
		p.blob(buffer.Bytes())
	}
	config, err := partial.RawConfigFile(made)
	p.keep(err)
	p.blob(config)
	raw, err := made.RawManifest()
	p.keep(err)
	mediaType, err := made.MediaType()
	p.keep(err)
	if tag == "" {
		tag = digestOf(raw)
	}
	p.put(tag, string(mediaType), raw)
	return digestOf(raw)
}

func (p *pusher) blob(body []byte) string {
	digest := digestOf(body)
	p.send(http.MethodPost, fmt.Sprintf("/v2/%s/blobs/uploads/?digest=%s", p.repository, digest), "", body)
	return digest
}

func (p *pusher) put(reference, mediaType string, body []byte) {
	p.send(http.MethodPut, p.r.manifestPath(p.repository, reference), mediaType, body)
}

func (p *pusher) send(method, path, contentType string, body []byte) {
	if p.err == nil {
		_, err := p.r.past(method, path, contentType, body)
		p.keep(err)
	}
}

// keep says whether something has gone wrong so far.
func (p *pusher) keep(err error) bool {
	if p.err == nil {
		p.err = err
	}
	return p.err != nil
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Manifest reads a stored manifest, or an error; past log, knobs and auth.
func (r *Registry) Manifest(repository, reference string) (json.RawMessage, error) {
	return r.past(http.MethodGet, r.manifestPath(repository, reference), "", nil)
}
