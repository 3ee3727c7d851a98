package overlay

import "regexp"

// remoteReference matches what kustomize would fetch or clone, and a little
// more: URLs, git::, user@host:path, and github.com with or without a scheme. It
// wins over a file of the same name, as it does in kustomize (api v0.21.2,
// internal/loader and internal/git/repospec.go).
var remoteReference = regexp.MustCompile(`(?i)^\s*(git::\s*)*([a-z][a-z0-9+.-]*://|https?:|[a-z][a-z0-9-]*@|github\.com[/:])|^\S*\?(ref|version|timeout|submodules)=`)

// remote says whether kustomize could leave the file system for a reference.
func remote(reference string) bool { return remoteReference.MatchString(reference) }
