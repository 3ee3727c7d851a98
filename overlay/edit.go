package overlay

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"tagboat/image"
)

// Edit writes each set's image into its entry and gives the new bytes; it
// writes no file. All or nothing: with an error no set is done.
//
// Bytes are spliced, never encoded again: only the entries' own lines change, at
// most two of them an entry (three with Rename). The result is decoded by kyaml
// and by kustomize's own types, and refused (ErrUnsafe) unless only the wanted
// fields of the wanted entries differ.
//
// An entry that has the digest already is left alone, whatever its tag says: the
// same digest under another tag would restart pods for nothing (kustomize#5664).
// An entry with Line 0 is added, in the style of the file.
func Edit(fsys fs.FS, sets []Set) (Edited, error) {
	files, err := byDirectory(sets)
	if err != nil {
		return Edited{}, err
	}
	var all Edited
	for _, f := range files {
		one, err := editFile(fsys, f)
		if err != nil {
			return Edited{}, fmt.Errorf("edit images: %w", err)
		}
		all.Files = append(all.Files, one.Files...)
		all.Changes = append(all.Changes, one.Changes...)
		all.Warnings = append(all.Warnings, one.Warnings...)
	}
	return all, nil
}

// target is the sets of one directory's kustomization.
type target struct {
	dir  string
	file string // "" where only the directory is known
	sets []Set
}

// byDirectory sorts the sets by directory, in the order given.
func byDirectory(sets []Set) ([]target, error) {
	var files []target
	for _, s := range sets {
		if err := checkSet(s); err != nil {
			return nil, err
		}
		dir := s.Entry.Dir
		if s.Entry.File != "" {
			dir = path.Dir(s.Entry.File)
		}
		if dir == "" {
			return nil, fmt.Errorf("edit images: entry %s names neither a file nor a directory", s.Entry.Name)
		}
		at := slices.IndexFunc(files, func(f target) bool { return f.dir == path.Clean(dir) })
		if at < 0 {
			at, files = len(files), append(files, target{dir: path.Clean(dir)})
		}
		if s.Entry.File != "" {
			files[at].file = s.Entry.File
		}
		files[at].sets = append(files[at].sets, s)
	}
	return files, nil
}

// checkSet refuses what must never be written.
func checkSet(s Set) error {
	fail := func(err error) error { return fmt.Errorf("edit images: entry %s: %w", s.Entry.Name, err) }
	if s.Entry.Name == "" {
		return fail(fmt.Errorf("it has no name"))
	}
	if err := image.CheckDigest(s.To.Digest); err != nil {
		return fail(err)
	}
	if s.To.Tag != "" {
		if err := image.CheckTag(s.To.Tag); err != nil {
			return fail(err)
		}
	}
	if s.Rename {
		if err := image.CheckRepository(s.To.Repository); err != nil {
			return fail(err)
		}
	}
	if s.Pin != PinTagAndDigest && s.Pin != PinDigest {
		return fail(fmt.Errorf("there is no pin %q", s.Pin))
	}
	return nil
}

func editFile(fsys fs.FS, f target) (Edited, error) {
	before, err := load(fsys, f.dir)
	if err != nil {
		return Edited{}, err
	}
	if f.file != "" && f.file != before.file {
		return Edited{}, fmt.Errorf("%w: %s holds %s, not %s", ErrNoKustomization, f.dir, path.Base(before.file), path.Base(f.file))
	}
	plans, err := before.plan(f.sets)
	if err != nil {
		return Edited{}, err
	}
	var done Edited
	for _, p := range plans {
		done.Warnings = append(done.Warnings, p.warnings...)
	}
	raw, err := splice(before.raw, allCuts(plans))
	if err != nil {
		return Edited{}, fmt.Errorf("%s: %w: %w", before.file, ErrUnsafe, err)
	}
	if bytes.Equal(raw, before.raw) {
		return done, nil
	}
	after, warnings, err := judge(before, raw, plans)
	if err != nil {
		return Edited{}, err
	}
	done.Warnings = append(done.Warnings, warnings...)
	done.Files = []File{{Path: before.file, Before: before.raw, After: raw}}
	for _, p := range plans {
		if len(p.cuts) == 0 {
			continue
		}
		p.change.Line = after.items[p.index].line()
		done.Changes = append(done.Changes, p.change)
	}
	return done, nil
}

// allCuts puts those of added entries behind the others: both may fall on the
// end of the last entry.
func allCuts(plans []plan) []cut {
	var cuts, added []cut
	for _, p := range plans {
		if p.added {
			added = append(added, p.cuts...)
		} else {
			cuts = append(cuts, p.cuts...)
		}
	}
	return append(cuts, added...)
}
