package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// commitID is a tag without a digit that does not move all the same.
var commitID = regexp.MustCompile(`^[a-f]{7,64}$`)

// mutableTag warns of tags that are made to move. Several registries (Quay, and
// those with retention rules) delete a digest once no tag points to it.
func mutableTag(tag string) []string {
	moving := []string{"latest", "main", "master", "trunk", "head", "dev", "develop", "development", "edge", "nightly", "stable", "canary", "beta", "alpha", "test", "staging", "prod", "production", "release", "current", "rolling", "snapshot"}
	name := strings.ToLower(tag)
	if tag == "" || (!slices.Contains(moving, name) && (strings.ContainsFunc(tag, unicode.IsDigit) || commitID.MatchString(tag))) {
		return nil
	}
	return []string{fmt.Sprintf("the tag %q looks made to move; when it does, some registries delete the digest that is pinned: give each build a tag of its own", tag)}
}
