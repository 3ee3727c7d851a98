package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	maxDepth  = 3       // of nested indexes
	maxNested = 16      // indexes that are read to learn their platforms
	maxConfig = 8 << 20 // image configurations hold the history, rarely more than kilobytes
)

// ociPlatform is a descriptor's or a configuration's platform.
type ociPlatform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
}

// String is os/arch[/variant] in its one spelling: arm64/v8 is arm64, arm is
// arm/v7, amd64/v1 is amd64. No platform, or an unknown one, is "".
func (p *ociPlatform) String() string {
	if p == nil || p.OS == "" || p.Architecture == "" || p.OS == "unknown" || p.Architecture == "unknown" {
		return ""
	}
	variant := p.Variant
	switch arch := p.Architecture; {
	case arch == "arm64" && variant == "v8", arch == "amd64" && variant == "v1":
		variant = ""
	case arch == "arm" && variant == "":
		variant = "v7"
	}
	text := p.OS + "/" + p.Architecture
	if variant != "" {
		text += "/" + variant
	}
	return plain(text, 60)
}

// parsePlatform reads os/arch[/variant] into that spelling.
func parsePlatform(text string) (string, error) {
	parts := strings.Split(strings.ToLower(text), "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return "", fmt.Errorf("platform %q is not os/arch or os/arch/variant, e.g. linux/amd64", text)
	}
	p := &ociPlatform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	if p.String() == "" {
		return "", fmt.Errorf("platform %q can never run", text)
	}
	return p.String(), nil
}

// imageConfig is the part of an image's configuration blob that is of use here.
type imageConfig struct {
	ociPlatform
	Created time.Time `json:"-"`
	Config  struct {
		Labels map[string]string `json:"Labels"`
	} `json:"config"`
}

// leaf is an image below an index, with its platform and the way to it.
type leaf struct {
	platform string
	child    descriptor
}

// walk goes through the indexes inside an index.
type walk struct {
	client     *Client
	repository string
	read       int
}

// leaves lists the images below an index. An index inside counts by the platform
// of its descriptor where it has one; only without one is it read, down to depth.
func (w *walk) leaves(ctx context.Context, d *document, depth int) ([]leaf, error) {
	var all []leaf
	for _, child := range d.Manifests {
		platform := child.Platform.String()
		switch {
		case platform != "" && (child.isImage() || isIndexType(child.MediaType)):
			all = append(all, leaf{platform, child})
		case isIndexType(child.MediaType) && depth > 1:
			below, err := w.nested(ctx, child, depth-1)
			if err != nil {
				return all, err
			}
			all = append(all, below...)
		}
	}
	return all, nil
}

func (w *walk) nested(ctx context.Context, child descriptor, depth int) ([]leaf, error) {
	if w.read++; w.read > maxNested {
		return nil, notImage("its index holds more than %d indexes that name no platform", maxNested)
	}
	nested, err := w.client.manifest(ctx, w.repository, child.Digest)
	if err != nil || !nested.isIndex() {
		return nil, err
	}
	return w.leaves(ctx, nested, depth)
}

// platformsOf are the platforms of an index, or of a single image whose
// configuration was read, sorted and each once.
func platformsOf(all []leaf) []string {
	var platforms []string
	for _, l := range all {
		platforms = append(platforms, l.platform)
	}
	slices.Sort(platforms)
	return slices.Compact(platforms)
}

// missing is the error for a required platform that is not there.
func missing(platform string, platforms []string) error {
	has := "names no platform"
	if len(platforms) > 0 {
		has = "has " + strings.Join(platforms, ", ")
	}
	return &problem{kind: ErrPlatform, text: fmt.Sprintf("no %s; the image %s", platform, has), fix: "build for that platform, or do not require it"}
}

// checkChild makes sure that the manifest of a required platform can be pulled:
// a registry's clean-up may have deleted it under a living index. Inside a nested
// index the same is asked of what it holds.
func (c *Client) checkChild(ctx context.Context, repository, platform string, child descriptor, depth int) error {
	if !isIndexType(child.MediaType) {
		return c.gone(platform, child, c.exists(ctx, repository, child.Digest))
	}
	below, err := (&walk{client: c, repository: repository}).nested(ctx, child, depth-1)
	if err != nil {
		return c.gone(platform, child, err)
	}
	for _, l := range below {
		if l.platform == platform && depth > 1 {
			return c.checkChild(ctx, repository, platform, l.child, depth-1)
		}
	}
	return missing(platform, platformsOf(below))
}

// gone makes a child's 404 the platform's error; others stay what they are.
func (c *Client) gone(platform string, child descriptor, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	return &problem{kind: ErrPlatform, gone: true, text: fmt.Sprintf("the index lists %s as %s, but that manifest is not in the registry", platform, child.Digest),
		fix: "a clean-up of untagged images may have deleted it; push the image again"}
}

// configOf reads the configuration blob of an image's manifest.
func (c *Client) configOf(ctx context.Context, repository string, d *document) (*imageConfig, error) {
	if known := c.manifests.config(repository, d.Config.Digest); known != nil {
		return known, nil
	}
	s := c.session(repository)
	a, err := s.get(ctx, http.MethodGet, path(repository), "/blobs/"+d.Config.Digest, maxConfig)
	if err != nil {
		return nil, err
	}
	if err := s.judge("configuration "+d.Config.Digest, a); err != nil {
		return nil, err
	}
	if got := hashOf(a.body, d.Config.Digest); got != d.Config.Digest || a.over {
		return nil, &problem{kind: ErrDigestMismatch, text: fmt.Sprintf("the configuration is not the one of %s", d.Config.Digest)}
	}
	var config imageConfig
	if err := json.Unmarshal(a.body, &config); err != nil {
		return nil, notImage("its configuration is no JSON of an image")
	}
	var dated struct {
		Created string `json:"created"`
	}
	if json.Unmarshal(a.body, &dated) == nil {
		config.Created = c.believable(dated.Created)
	}
	c.manifests.keepConfig(repository, d.Config.Digest, &config)
	return &config, nil
}
