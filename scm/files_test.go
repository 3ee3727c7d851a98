package scm_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
)

// counted is a source over a map, as a forge would be: it counts what it reads.
type counted struct {
	tree  fstest.MapFS
	calls atomic.Int64
	fail  map[string]error
	delay time.Duration
	most  atomic.Int64
	now   atomic.Int64
}

func newCounted() *counted {
	return &counted{fail: map[string]error{}, tree: fstest.MapFS{
		"README.md":                      {Data: []byte("hello\n"), Mode: 0o644},
		"run.sh":                         {Data: []byte("#!\n"), Mode: 0o755},
		"link":                           {Data: []byte("README.md"), Mode: fs.ModeSymlink | 0o777},
		"apps/a/overlays/staging/k.yaml": {Data: []byte("a\n"), Mode: 0o644},
		"apps/b/overlays/staging/k.yaml": {Data: []byte("b\n"), Mode: 0o644},
		"apps/c/k.yaml":                  {Data: []byte("c\n"), Mode: 0o644},
	}}
}

func (c *counted) source(blind bool) scm.FileSource {
	return scm.FileSource{ReadFile: c.readFile, ReadDir: c.readDir, Blind: blind}
}

func (c *counted) begin(ctx context.Context, name string) error {
	c.calls.Add(1)
	n := c.now.Add(1)
	for old := c.most.Load(); n > old && !c.most.CompareAndSwap(old, n); old = c.most.Load() {
	}
	time.Sleep(c.delay)
	c.now.Add(-1)
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.fail[name]
}

func (c *counted) readFile(ctx context.Context, name string) ([]byte, fs.FileMode, error) {
	if err := c.begin(ctx, name); err != nil {
		return nil, 0, err
	}
	f, ok := c.tree[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	return f.Data, f.Mode, nil
}

func (c *counted) readDir(ctx context.Context, name string) ([]scm.FileEntry, error) {
	if err := c.begin(ctx, name); err != nil {
		return nil, err
	}
	entries, err := c.tree.ReadDir(name)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	var list []scm.FileEntry
	for _, e := range entries {
		mode := e.Type()
		if f, ok := c.tree[name+"/"+e.Name()]; ok {
			mode = f.Mode
		} else if f, ok := c.tree[e.Name()]; ok && name == "." {
			mode = f.Mode
		}
		list = append(list, scm.FileEntry{Name: e.Name(), Mode: mode})
	}
	return list, nil
}

func TestFilesPassTestFS(t *testing.T) {
	for _, blind := range []bool{false, true} {
		files := scm.NewFiles(t.Context(), newCounted().source(blind))
		if err := fstest.TestFS(files, "README.md", "run.sh", "link", "apps/a/overlays/staging/k.yaml"); err != nil {
			t.Errorf("blind %v: %v", blind, err)
		}
	}
}

func TestFilesFollowNoSymlink(t *testing.T) {
	for _, blind := range []bool{false, true} {
		files := scm.NewFiles(t.Context(), newCounted().source(blind))
		if b, err := files.ReadFile("link"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("blind %v: read a symlink: %q, %v", blind, b, err)
		}
		file, err := files.Open("link")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(file); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("blind %v: read an open symlink: %q, %v", blind, b, err)
		}
		info, err := files.Stat("link")
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("blind %v: stat %v, %v", blind, info, err)
		}
		if target, err := files.ReadLink("link"); err != nil || target != "README.md" {
			t.Errorf("blind %v: target %q, %v", blind, target, err)
		}
		if _, err := files.ReadLink("README.md"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("blind %v: link of a file: %v", blind, err)
		}
	}
}

func TestFilesReadOnceForAll(t *testing.T) {
	c := newCounted()
	c.delay = 5 * time.Millisecond
	files := scm.NewFiles(t.Context(), c.source(true))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := files.ReadFile("README.md"); err != nil {
				t.Error(err)
			}
			if _, err := files.Stat("run.sh"); err != nil {
				t.Error(err)
			}
			if _, err := files.Stat("nope"); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := c.calls.Load(); n != 2 {
		t.Errorf("%d calls, want one for the file and one for its directory", n)
	}
	b, err := files.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	b[0] = 'X'
	if again, err := files.ReadFile("README.md"); err != nil || string(again) != "hello\n" {
		t.Errorf("the cache was changed: %q, %v", again, err)
	}
}

func TestFilesFailureIsNotAbsenceAndNotKept(t *testing.T) {
	for _, blind := range []bool{false, true} {
		c := newCounted()
		files := scm.NewFiles(t.Context(), c.source(blind))
		c.fail["README.md"] = scm.ErrUnavailable
		if _, err := files.ReadFile("README.md"); !errors.Is(err, scm.ErrUnavailable) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("blind %v: got %v", blind, err)
		}
		delete(c.fail, "README.md")
		if _, err := files.ReadFile("README.md"); err != nil {
			t.Errorf("blind %v: after the failure: %v", blind, err)
		}
		c.fail["apps"] = scm.ErrRateLimited
		if _, err := files.Stat("apps/a"); !errors.Is(err, scm.ErrRateLimited) {
			t.Errorf("blind %v: stat: %v", blind, err)
		}
		if _, err := files.Glob("apps/*/k.yaml"); !errors.Is(err, scm.ErrRateLimited) {
			t.Errorf("blind %v: glob: %v", blind, err)
		}
		delete(c.fail, "apps")
	}
	c := newCounted()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scm.NewFiles(ctx, c.source(false)).Glob("*"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestGlobReadsLevelByLevelAtOnce(t *testing.T) {
	cases := []struct {
		pattern string
		want    []string
		calls   int64
	}{
		{"apps/*/overlays/staging", []string{"apps/a/overlays/staging", "apps/b/overlays/staging"}, 4},
		{"apps/*/overlays/staging/*.yaml", []string{"apps/a/overlays/staging/k.yaml", "apps/b/overlays/staging/k.yaml"}, 4},
		{"README.md", []string{"README.md"}, 1},
		{"nope/*", nil, 1},
		{"*/k.yaml", nil, 5},
		{"../*", nil, 0},
	}
	for _, c := range cases {
		t.Run(c.pattern, func(t *testing.T) {
			source := newCounted()
			source.delay = 5 * time.Millisecond
			got, err := scm.NewFiles(t.Context(), source.source(false)).Glob(c.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if n := source.calls.Load(); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
			if c.calls == 4 && source.most.Load() < 2 {
				t.Error("the directories of a level were read one by one")
			}
		})
	}
	if _, err := scm.NewFiles(t.Context(), newCounted().source(false)).Glob("["); err == nil {
		t.Error("a bad pattern was accepted")
	}
}

func TestGitMode(t *testing.T) {
	for mode, want := range map[string]fs.FileMode{
		"100644": 0o644, "100755": 0o755, "120000": fs.ModeSymlink | 0o777,
		"040000": fs.ModeDir | 0o755, "40000": fs.ModeDir | 0o755, "160000": fs.ModeIrregular,
	} {
		if got := scm.GitMode(mode); got != want {
			t.Errorf("%s: got %v, want %v", mode, got, want)
		}
	}
}
