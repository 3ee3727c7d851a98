package overlay

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// manyImages is a kustomization with n entries and as many patches.
func manyImages(n int) (fstest.MapFS, []Set) {
	var images, patches strings.Builder
	var sets []Set
	for i := range n {
		name := fmt.Sprintf("app%d", i)
		fmt.Fprintf(&images, "  - name: %s\n    newName: r.example/acme/%s\n    newTag: v1 # bot\n", name, name)
		fmt.Fprintf(&patches, "  - path: %s.yaml # %s\n", name, strings.Repeat("why ", 10))
		sets = append(sets, setApp(named(name)))
	}
	return oneFile("resources:\n  - ../base\n\nimages:\n" + images.String() + "\npatches:\n" + patches.String()), sets
}

func BenchmarkEdit(b *testing.B) {
	for _, n := range []int{1, 100} {
		fsys, sets := manyImages(100)
		b.Run(fmt.Sprintf("%d of 100 entries", n), func(b *testing.B) {
			for b.Loop() {
				if e, err := Edit(fsys, sets[:n]); err != nil || len(e.Changes) != n {
					b.Fatal(err, len(e.Changes))
				}
			}
		})
	}
	fsys, sets := manyImages(1)
	b.Run("1 of 1 entry", func(b *testing.B) {
		for b.Loop() {
			if _, err := Edit(fsys, sets); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEntries(b *testing.B) {
	fsys, _ := manyImages(100)
	for b.Loop() {
		if _, err := Entries(fsys, stagingDir); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEditManyImages holds the bound of 2N lines where it matters most.
func TestEditManyImages(t *testing.T) {
	fsys, sets := manyImages(100)
	e, err := Edit(fsys, sets)
	if err != nil || len(e.Changes) != 100 {
		t.Fatalf("Edit: %v, %d changes", err, len(e.Changes))
	}
	if n := extraLines(e.Files[0].After, e.Files[0].Before); n != 200 {
		t.Errorf("%d lines changed; want 200", n)
	}
	for i, c := range e.Changes {
		line := strings.Split(string(e.Files[0].After), "\n")[c.Line-1]
		if want := "  - name: " + sets[i].Entry.Name; line != want {
			t.Errorf("change %d is said to be on line %d, which is %q; want %q", i, c.Line, line, want)
		}
	}
}
