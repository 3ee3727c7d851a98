package main

import (
	"bufio"
	"context"
	"os"
	"path"
	"strings"

	"tagboat/scm"
)

// gitBranches tells which branches a checkout knows, its own and origin's, from
// the files of git. A checkout without them (a linked worktree) knows none.
func gitBranches(root *os.Root) func(context.Context, string) (bool, error) {
	packed := map[string]bool{}
	if content, err := root.ReadFile(".git/packed-refs"); err == nil {
		for line := range strings.Lines(string(content)) {
			if _, name, found := strings.Cut(strings.TrimSpace(line), " "); found {
				packed[name] = true
			}
		}
	}
	return func(_ context.Context, name string) (bool, error) {
		for _, ref := range []string{"refs/heads/" + name, "refs/remotes/origin/" + name} {
			if info, err := root.Stat(path.Join(".git", ref)); packed[ref] || err == nil && info.Mode().IsRegular() {
				return true, nil
			}
		}
		return false, nil
	}
}

// origin is where a checkout was cloned from; the zero value where its git does
// not tell, or tells it with a credential.
func (t *tool) origin(root *os.Root) scm.Location {
	content, err := root.ReadFile(".git/config")
	if err != nil {
		return scm.Location{}
	}
	in := false
	for lines := bufio.NewScanner(strings.NewReader(string(content))); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			in = line == `[remote "origin"]`
			continue
		}
		key, url, found := strings.Cut(line, "=")
		if !in || !found || strings.TrimSpace(key) != "url" {
			continue
		}
		at, err := scm.Locate(strings.TrimSpace(url), scm.LocateOptions{CI: t.server()})
		if err != nil || at.Scheme == "file" {
			return scm.Location{}
		}
		return at
	}
	return scm.Location{}
}
