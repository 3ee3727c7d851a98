package overlay

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pointer is the directory that an object has built, in this repository.
type pointer struct {
	dir     string
	skip    string // why it is not in this repository
	assumed string // what is taken for granted, where that cannot be told
}

// pointsTo says what is built with a list's images.
func (d *document) pointsTo(repository []string) pointer {
	if d.strings {
		return d.argoPointsTo(repository)
	}
	return d.fluxPointsTo(repository)
}

func (d *document) fluxPointsTo(repository []string) pointer {
	kind, name := scalarAt(d.root, "sourceRef", "kind"), scalarAt(d.root, "sourceRef", "name")
	if kind != "GitRepository" {
		return pointer{skip: fmt.Sprintf("its source is the %s %s, not a git repository", kind, name)}
	}
	p := readPath(scalarAt(d.root, "path"))
	url := ""
	for _, doc := range d.docs {
		if len(doc.Content) > 0 && scalarAt(doc.Content[0], "kind") == kind && scalarAt(doc.Content[0], "metadata", "name") == name {
			url = scalarAt(doc.Content[0], "spec", "url")
		}
	}
	switch {
	case p.skip != "":
	case url != "":
		p.of(url, repository, fmt.Sprintf("GitRepository %s", name))
	case name != "flux-system": // which bootstrap makes for the repository that it writes into
		p.assumed = fmt.Sprintf("GitRepository %s is taken for this repository", name)
	}
	return p
}

func (d *document) argoPointsTo(repository []string) pointer {
	source := d.chain[len(d.chain)-1]
	revision := scalarAt(source, "targetRevision")
	if scalarAt(source, "path") == "" {
		return pointer{skip: "its source has no path"}
	}
	p := readPath(scalarAt(source, "path"))
	switch {
	case p.skip != "":
	case fixedRevision.MatchString(revision):
		p.skip = fmt.Sprintf("its source is fixed at %s, not at the branch that is edited", revision)
	default:
		p.of(scalarAt(source, "repoURL"), repository, "its repoURL")
	}
	return p
}

// fixedRevision matches a commit.
var fixedRevision = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// readPath is a path as Flux and Argo CD read it, from the top of the repository.
func readPath(p string) pointer {
	if mark := placeholders.FindString(p); mark != "" {
		return pointer{skip: fmt.Sprintf("its path %s has the placeholder %s, which is filled in later", p, mark)}
	}
	clean := strings.TrimPrefix(path.Clean("/"+p), "/")
	if clean == "" {
		clean = "."
	}
	return pointer{dir: clean}
}

// of decides whether the path is in this repository.
func (p *pointer) of(url string, repository []string, what string) {
	switch {
	case len(repository) == 0 || placeholders.MatchString(url):
		p.assumed = fmt.Sprintf("%s (%s) is taken for this repository", what, withoutUser(url))
	case !slices.ContainsFunc(repository, func(r string) bool { return sameURL(r, url) }):
		p.skip = fmt.Sprintf("%s is %s, which is not this repository", what, withoutUser(url))
	}
}

// urlHost matches what stands before the path of a git URL: scheme, user, host
// and port, or user@host: of the short form.
var urlHost = regexp.MustCompile(`^([a-z+]+://[^/]*/|[^/@]+@[^/:]+:/?)`)

// sameURL compares the paths of two git URLs. One may have a prefix: that under
// which the forge serves the web.
func sameURL(a, b string) bool {
	path := func(u string) string {
		u = urlHost.ReplaceAllString(strings.ToLower(u), "")
		return "/" + strings.TrimSuffix(strings.Trim(u, "/"), ".git")
	}
	p, q := path(a), path(b)
	return len(p) > 1 && len(q) > 1 && (strings.HasSuffix(p, q) || strings.HasSuffix(q, p))
}

// urlUser matches a user and password in a URL, which are never shown.
var urlUser = regexp.MustCompile(`://[^/@]*@`)

func withoutUser(url string) string { return brief(urlUser.ReplaceAllString(url, "://")) }
