//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// shoot takes a picture of a page into the directory E2E_SHOTS, for a person to
// look at what a reviewer sees. Without the variable nobody would look.
func shoot(t *testing.T, url, name string) {
	t.Helper()
	dir := os.Getenv("E2E_SHOTS")
	if dir == "" {
		return
	}
	picture := filepath.Join(dir, name+".png")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	browser := exec.CommandContext(ctx, tool(t, "TAGBOAT_CHROMIUM"),
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+t.TempDir(), "--window-size=1280,1400", "--screenshot="+picture, url)
	browser.WaitDelay = 5 * time.Second // its helpers keep the output open
	if out, err := browser.CombinedOutput(); err != nil {
		t.Fatalf("show %s: %v\n%s", url, err, tail(string(out), 10))
	}
	if info, err := os.Stat(picture); err != nil || info.Size() < 5000 {
		t.Errorf("the picture of %s is missing or empty: %v", url, err)
	}
}
