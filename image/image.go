// Package image holds the word that every other package speaks: the image
// reference, registry/repository:tag@digest.
package image

import (
	"fmt"
	"regexp"
	"strings"
)

// Reference is an image reference, each part as written. Tag or Digest may be
// empty. Both may be set: the tag is then a name for people and the digest is
// what runs.
type Reference struct {
	Repository string // registry host and repository, e.g. ghcr.io/acme/todo-api
	Tag        string // e.g. v1.4.2; a tag moves
	Digest     string // e.g. sha256:…; a digest does not move
}

// Grammar of the OCI distribution specification, "Pulling manifests".
var (
	tagGrammar        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	digestGrammar     = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
	repositoryGrammar = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	hostGrammar       = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$`)
)

// Parse splits s into its parts and checks each against the OCI grammar. The
// tag is what follows the last colon after the last slash, so that a registry's
// port is never taken for a tag. Tag and digest are both kept, and neither is
// invented: "nginx" has no tag.
func Parse(s string) (Reference, error) {
	r := Reference{Repository: s}
	if strings.Contains(s, "://") {
		return Reference{}, fmt.Errorf("parse image %q: it is a URL; write registry/repository:tag without %q", s, s[:strings.Index(s, "://")+3])
	}
	if at := strings.Index(s, "@"); at >= 0 {
		r.Repository, r.Digest = s[:at], s[at+1:]
		if err := CheckDigest(r.Digest); err != nil {
			return Reference{}, fmt.Errorf("parse image %q: %w", s, err)
		}
	}
	if colon := strings.LastIndex(r.Repository, ":"); colon > strings.LastIndex(r.Repository, "/") {
		r.Repository, r.Tag = r.Repository[:colon], r.Repository[colon+1:]
		if err := CheckTag(r.Tag); err != nil {
			return Reference{}, fmt.Errorf("parse image %q: %w", s, err)
		}
	}
	if err := CheckRepository(r.Repository); err != nil {
		return Reference{}, fmt.Errorf("parse image %q: %w", s, err)
	}
	return r, nil
}

// String writes the reference back: repository, then :tag and @digest where set.
func (r Reference) String() string {
	s := r.Repository
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// CheckTag says what is wrong with a tag, or nothing.
func CheckTag(tag string) error {
	if !tagGrammar.MatchString(tag) {
		return fmt.Errorf("%q is not a tag (letters, digits, '_', '.', '-', at most 128, first not '.' or '-')", tag)
	}
	return nil
}

// CheckDigest says what is wrong with a digest, or nothing. sha256 and sha512
// are the algorithms that the OCI image specification registers.
func CheckDigest(digest string) error {
	if !digestGrammar.MatchString(digest) {
		return fmt.Errorf("%q is not a digest (sha256: and 64, or sha512: and 128, lower-case hexadecimal digits)", digest)
	}
	return nil
}

// CheckRepository says what is wrong with a registry host and repository, or nothing.
func CheckRepository(repository string) error {
	if repository == "" {
		return fmt.Errorf("no repository before the tag or digest")
	}
	host, path := split(repository)
	if host != "" && !hostGrammar.MatchString(host) {
		return fmt.Errorf("%q is not a registry host", host)
	}
	if strings.ToLower(path) != path {
		return fmt.Errorf("repository %q has upper-case letters, which no registry accepts", path)
	}
	if !repositoryGrammar.MatchString(path) {
		return fmt.Errorf("%q is not a repository name", path)
	}
	return nil
}

// SameRepository says whether two spellings name one repository: nginx is
// docker.io/library/nginx.
func SameRepository(a, b string) bool { return Canonical(a) == Canonical(b) }

// Canonical is the one spelling of a repository that the registry is asked by:
// Docker Hub's short names get their host and "library/".
func Canonical(repository string) string {
	host, path := split(repository)
	switch host {
	case "", "docker.io", "index.docker.io", "registry-1.docker.io":
		host = "index.docker.io"
		if !strings.Contains(path, "/") {
			path = "library/" + path
		}
	}
	return host + "/" + path
}

// Host is the registry's host (and port) that a repository lives on.
func Host(repository string) string {
	host, _, _ := strings.Cut(Canonical(repository), "/")
	return host
}

// DockerHub says whether a repository lives on Docker Hub, which counts GETs
// of manifests against a pull limit.
func DockerHub(repository string) bool { return Host(repository) == "index.docker.io" }

// split parts a repository into registry host and path. As in Docker, the first
// element is a host when it has a dot or a colon, or is localhost.
func split(repository string) (host, path string) {
	first, rest, found := strings.Cut(repository, "/")
	if !found || (!strings.ContainsAny(first, ".:") && first != "localhost") {
		return "", repository
	}
	return first, rest
}
