package registry

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"tagboat/image"
)

// maxManifest is what registries take at most (Azure's limit); more is no manifest.
const maxManifest = 4 << 20

// accepted are the four kinds that a tag of an image may name. A registry that is
// not told about one of them may convert, choose a child, or answer 404.
const accepted = string(types.OCIImageIndex) + ", " + string(types.DockerManifestList) + ", " +
	string(types.OCIManifestSchema1) + ", " + string(types.DockerManifestSchema2)

// descriptor points to content, as the OCI image specification has it.
type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType"`
	Platform     *ociPlatform      `json:"platform"`
	Annotations  map[string]string `json:"annotations"`
}

// document is an image manifest or an index: the parts that are of use here.
type document struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        *descriptor       `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations"`

	digest string
}

func (d *document) isIndex() bool { return isIndexType(d.MediaType) }

func isIndexType(mediaType string) bool {
	return mediaType == string(types.OCIImageIndex) || mediaType == string(types.DockerManifestList)
}

func isManifestType(mediaType string) bool {
	return mediaType == string(types.OCIManifestSchema1) || mediaType == string(types.DockerManifestSchema2)
}

// hashOf computes a digest with the algorithm of the one that is wanted; sha256,
// which registries use for tags, where none is.
func hashOf(body []byte, wanted string) string {
	if strings.HasPrefix(wanted, "sha512:") {
		sum := sha512.Sum512(body)
		return "sha512:" + hex.EncodeToString(sum[:])
	}
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// readManifest hashes a body and judges what it is. The body decides: a
// Docker-Content-Digest may lie or be missing, a Content-Type may be anything.
// wanted is the digest that it is compared with later, or "": it gives the
// algorithm.
func readManifest(a *answer, wanted string) (*document, error) {
	if a.over {
		return nil, notImage("its manifest is larger than %d MiB", maxManifest>>20)
	}
	digest := hashOf(a.body, wanted)
	if announced := a.header.Get("Docker-Content-Digest"); announced != "" && announced != hashOf(a.body, announced) {
		return nil, &problem{kind: ErrDigestMismatch, text: fmt.Sprintf("the registry announces %s and sends a manifest of %s", plain(announced, 140), digest),
			fix: "a proxy or the registry is at fault; ask the registry itself"}
	}
	d, err := parseManifest(a.body, a.header)
	if err != nil {
		return nil, err
	}
	d.digest = digest
	return d, nil
}

func notImage(format string, args ...any) error {
	return &problem{kind: ErrNotImage, text: fmt.Sprintf(format, args...)}
}

// parseManifest accepts an image manifest or an index, and says what else it is.
func parseManifest(body []byte, header http.Header) (*document, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, notImage("the registry sent an empty body")
	}
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		if isHTML(header) || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
			return nil, &problem{kind: ErrNotImage, text: "the registry sent a web page instead of a manifest", fix: "a login page or a proxy may stand before it"}
		}
		return nil, notImage("the registry sent no JSON manifest")
	}
	if d.SchemaVersion == 1 || strings.Contains(d.MediaType+header.Get("Content-Type"), "docker.distribution.manifest.v1+") {
		return nil, &problem{kind: ErrNotImage, text: "it is a schema 1 manifest, whose digest nobody can pull by", fix: "push it again with a current tool"}
	}
	if d.SchemaVersion != 2 {
		return nil, notImage("its schemaVersion is %d instead of 2", d.SchemaVersion)
	}
	if err := d.settleType(header); err != nil {
		return nil, err
	}
	if d.isIndex() {
		return &d, d.checkIndex()
	}
	return &d, d.checkImage()
}

// settleType takes the media type from the body, else from the header, else from
// the shape; body and header must not contradict each other, nor the body itself
// (CVE-2021-41190).
func (d *document) settleType(header http.Header) error {
	announced, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if !isIndexType(announced) && !isManifestType(announced) {
		announced = "" // application/json and the like say nothing
	}
	d.MediaType, _, _ = strings.Cut(d.MediaType, ";")
	if d.MediaType != "" && announced != "" && d.MediaType != announced {
		return notImage("the registry calls it %s, and it calls itself %s", announced, plain(d.MediaType, 100))
	}
	if d.MediaType == "" {
		d.MediaType = announced
	}
	if d.MediaType == "" && d.Manifests != nil {
		d.MediaType = string(types.OCIImageIndex)
	}
	if d.MediaType == "" && d.Config != nil {
		d.MediaType = string(types.OCIManifestSchema1)
	}
	switch {
	case !d.isIndex() && !isManifestType(d.MediaType):
		return notImage("its media type is %q", plain(d.MediaType, 100))
	case d.Manifests != nil && (d.Config != nil || d.Layers != nil):
		return notImage("it is an index and a manifest at once")
	case d.isIndex() && d.Manifests == nil, !d.isIndex() && d.Config == nil:
		return notImage("it calls itself %s and does not look it", d.MediaType)
	}
	return nil
}

// checkIndex wants at least one child that can be an image, and sound digests,
// which become parts of URLs.
func (d *document) checkIndex() error {
	images := 0
	for _, child := range d.Manifests {
		if err := image.CheckDigest(child.Digest); err != nil {
			return notImage("its index holds a child whose digest is none: %v", err)
		}
		if child.isImage() || isIndexType(child.MediaType) {
			images++
		}
	}
	if images == 0 {
		return notImage("its index holds no image")
	}
	return nil
}

// isImage says whether an index's child may run: attestations and other artifacts
// that lie beside images do not. go-containerregistry writes the configuration's
// type as the artifact type.
func (c descriptor) isImage() bool {
	unknown := c.Platform != nil && (c.Platform.OS == "unknown" || c.Platform.Architecture == "unknown")
	return isManifestType(c.MediaType) && !unknown && (c.ArtifactType == "" || isConfigType(c.ArtifactType)) && c.Annotations["vnd.docker.reference.type"] == ""
}

func isConfigType(mediaType string) bool {
	return mediaType == string(types.OCIConfigJSON) || mediaType == string(types.DockerConfigJSON)
}

// checkImage looks at the configuration and the layers: charts, signatures and
// attestations are manifests as well.
func (d *document) checkImage() error {
	switch {
	case isConfigType(d.Config.MediaType):
	case d.Config.MediaType == "application/vnd.cncf.helm.config.v1+json":
		return notImage("it is a Helm chart")
	default:
		return notImage("it is an artifact of type %q", plain(cmp.Or(d.ArtifactType, d.Config.MediaType), 100))
	}
	if err := image.CheckDigest(d.Config.Digest); err != nil {
		return notImage("its configuration has no digest: %v", err)
	}
	for _, layer := range d.Layers {
		switch {
		case strings.HasPrefix(layer.MediaType, "application/vnd.dev.cosign."), strings.HasPrefix(layer.MediaType, "application/vnd.dev.sigstore."):
			return notImage("it is a signature (%s)", plain(layer.MediaType, 100))
		case strings.HasPrefix(layer.MediaType, "application/vnd.in-toto"), strings.HasPrefix(layer.MediaType, "application/vnd.dsse."):
			return notImage("it is an attestation (%s)", plain(layer.MediaType, 100))
		}
	}
	return nil
}

// memory keeps the manifests and configurations that were read, by repository and
// digest, so that Facts need not read again what Resolve has read.
type memory struct {
	mu        sync.Mutex
	documents map[string]*document
	configs   map[string]*imageConfig
}

// remembered bounds the memory of a process that lives on: beyond it, all is
// forgotten, which costs a request and never an answer.
const remembered = 4096

func (m *memory) document(repository, digest string) *document {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.documents[repository+"@"+digest]
}

func (m *memory) keepDocument(repository string, d *document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.documents == nil || len(m.documents) >= remembered {
		m.documents = map[string]*document{}
	}
	m.documents[repository+"@"+d.digest] = d
}

func (m *memory) config(repository, digest string) *imageConfig {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.configs[repository+"@"+digest]
}

func (m *memory) keepConfig(repository, digest string, c *imageConfig) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.configs == nil || len(m.configs) >= remembered {
		m.configs = map[string]*imageConfig{}
	}
	m.configs[repository+"@"+digest] = c
}
