package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tagboat/overlay"
)

// TestWorkingTree names directories as the system does, with backslashes on Windows;
// what the overlay is called from the top is written with slashes everywhere.
func TestWorkingTree(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{".git", "apps/todo/overlays/staging"} {
		if err := os.MkdirAll(filepath.Join(top, filepath.FromSlash(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	staging := filepath.Join(top, "apps", "todo", "overlays", "staging")
	file := filepath.Join(staging, "app.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, from, dir, want string }{
		{"a whole path", top, staging, "apps/todo/overlays/staging"},
		{"from the top", top, filepath.Join("apps", "todo", "overlays", "staging"), "apps/todo/overlays/staging"},
		{"with slashes", top, "apps/todo/overlays/staging/", "apps/todo/overlays/staging"},
		{"from beside", filepath.Join(top, "apps", "todo"), filepath.Join("..", "todo", "overlays", "staging"), "apps/todo/overlays/staging"},
		{"the directory itself", staging, ".", "apps/todo/overlays/staging"},
		{"a file", top, file, "apps/todo/overlays/staging/app.yaml"},
		{"an object of a file", top, filepath.Join("apps", "todo", "overlays", "staging", "app.yaml") + "#todo", "apps/todo/overlays/staging/app.yaml#todo"},
		{"the top", staging, top, "."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(tt.from)
			gotTop, got, err := workingTree(tt.dir)
			if err != nil {
				t.Fatal(err)
			}
			if !sameFile(t, gotTop, top) || got != tt.want {
				t.Errorf("got %s in %s, want %s in %s", got, gotTop, tt.want, top)
			}
		})
	}
	if _, _, err := workingTree(filepath.Join(top, "apps", "none")); err == nil || !strings.Contains(err.Error(), "neither a directory nor a file") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// sameFile compares what is there: a system may have two names for a directory.
func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(one, two)
}

// TestWriteKeepsBytes writes below a directory by slashes, bytes as they are.
func TestWriteKeepsBytes(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "overlays", "staging", "kustomization.yaml")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	before, after := "\ufeffimages:\r\n- name: app\r\n  newTag: v1\r\n", "\ufeffimages:\r\n- name: app\r\n  newTag: v2\r\n"
	if err := os.WriteFile(name, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	edit := []overlay.File{{Path: "overlays/staging/kustomization.yaml", Before: []byte(before), After: []byte(after)}}
	if err := write(root, edit); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != after {
		t.Errorf("wrote %q, want %q: %v", got, after, err)
	}
	if err := write(root, edit); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a file that has other bytes than were read was written over: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) != 1 {
		t.Errorf("writing left %v: %v", left, err)
	}
}
