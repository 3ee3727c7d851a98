//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// shoot takes a picture of a page into the directory E2E_SHOTS, so that a person
// can look at what a reviewer sees; without the variable it goes with the test.
func shoot(t *testing.T, url, name string) {
	t.Helper()
	dir := os.Getenv("E2E_SHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	picture := filepath.Join(dir, name+".png")
	browser := exec.CommandContext(t.Context(), tool(t, "TAGBOAT_CHROMIUM"),
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+t.TempDir(), "--window-size=1280,2000", "--virtual-time-budget=3000", "--screenshot="+picture, url)
	if out, err := browser.CombinedOutput(); err != nil {
		t.Fatalf("show %s: %v\n%s", url, err, tail(string(out), 10))
	}
	if info, err := os.Stat(picture); err != nil || info.Size() < 5000 {
		t.Errorf("the picture of %s is missing or empty: %v", url, err)
	}
}
