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
// writes no file. All or nothing: with an error no set is done. An entry's Dir is
// its target, as Entries took it; File alone will do for a kustomization, and for
// a file whose only object with images is meant.
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
	files, err := byFile(fsys, sets)
	if err != nil {
		return Edited{}, err
	}
	var all Edited
	for _, lists := range files {
		one, err := editFile(lists)
		if err != nil {
			return Edited{}, fmt.Errorf("edit images: %w", err)
		}
		all.Files = append(all.Files, one.Files...)
		all.Changes = append(all.Changes, one.Changes...)
		all.Warnings = append(all.Warnings, one.Warnings...)
	}
	return all, nil
}

// target is the sets of one target.
type target struct {
	name string // as Entries takes it
	file string // "" where only the directory is known
	sets []Set
}

// listEdit is what is to be done to one list of images.
type listEdit struct {
	before *document
	sets   []Set
	plans  []plan
}

// byFile reads the targets and sorts what is to be done by file, in the order
// given.
func byFile(fsys fs.FS, sets []Set) ([][]*listEdit, error) {
	targets, err := byTarget(sets)
	if err != nil {
		return nil, err
	}
	var files [][]*listEdit
	for _, t := range targets {
		lists, err := t.lists(fsys)
		if err != nil {
			return nil, fmt.Errorf("edit images: %w", err)
		}
		for _, l := range lists {
			files = join(files, l)
		}
	}
	return files, nil
}

// join adds a list to those of its file. FILE and FILE#NAME may be the same list.
func join(files [][]*listEdit, l *listEdit) [][]*listEdit {
	at := slices.IndexFunc(files, func(f []*listEdit) bool { return f[0].before.file == l.before.file })
	if at < 0 {
		return append(files, []*listEdit{l})
	}
	same := slices.IndexFunc(files[at], func(o *listEdit) bool {
		return o.before.root.Line == l.before.root.Line && o.before.root.Column == l.before.root.Column
	})
	if same >= 0 {
		files[at][same].sets = append(files[at][same].sets, l.sets...)
	} else {
		files[at] = append(files[at], l)
	}
	return files
}

// byTarget sorts the sets by target, in the order given.
func byTarget(sets []Set) ([]target, error) {
	var targets []target
	for _, s := range sets {
		if err := checkSet(s); err != nil {
			return nil, err
		}
		name := targetOf(s.Entry)
		if name == "" {
			return nil, fmt.Errorf("edit images: entry %s names neither a file nor a directory", s.Entry.Name)
		}
		name = path.Clean(name)
		at := slices.IndexFunc(targets, func(t target) bool { return t.name == name })
		if at < 0 {
			at, targets = len(targets), append(targets, target{name: name})
		}
		if s.Entry.File != "" {
			targets[at].file = s.Entry.File
		}
		targets[at].sets = append(targets[at].sets, s)
	}
	return targets, nil
}

// lists reads a target and deals its sets out. An entry stands by its name in
// any of the lists that an Application's sources have; each that has it is meant.
func (t target) lists(fsys fs.FS) ([]*listEdit, error) {
	docs, err := load(fsys, t.name)
	if err != nil {
		return nil, err
	}
	if file := docs[0].file; t.file != "" && t.file != file {
		return nil, fmt.Errorf("%w: %s holds %s, not %s", ErrNoKustomization, t.name, path.Base(file), path.Base(t.file))
	}
	if len(docs) == 1 {
		return []*listEdit{{before: docs[0], sets: t.sets}}, nil
	}
	var lists []*listEdit
	for _, d := range docs {
		lists = append(lists, &listEdit{before: d})
	}
	for _, s := range t.sets {
		found := false
		for _, l := range lists {
			if slices.ContainsFunc(l.before.items, func(it item) bool { return l.before.text(it, fieldName) == s.Entry.Name }) {
				l.sets, found = append(l.sets, s), true
			}
		}
		if !found {
			return nil, docs[0].inNoSource(s.Entry)
		}
	}
	return slices.DeleteFunc(lists, func(l *listEdit) bool { return len(l.sets) == 0 }), nil
}

// inNoSource refuses to choose the source to which an entry is added.
func (d *document) inNoSource(e Entry) error {
	if e.Line > 0 {
		return d.gone(e)
	}
	return fmt.Errorf("%s: %w: %s has several sources with kustomize, and none has an entry %s; write it into the right one by hand", d.file, ErrUnsafe, d.object, e.Name)
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

// editFile edits the lists of one file.
func editFile(lists []*listEdit) (Edited, error) {
	file, before := lists[0].before.file, lists[0].before.raw
	var done Edited
	var plans []plan
	if len(lists) > 1 { // of one reading
		befores, err := reread(lists, before)
		if err != nil {
			return Edited{}, err
		}
		for i, l := range lists {
			l.before = befores[i]
		}
	}
	for _, l := range lists {
		var err error
		if l.plans, err = l.before.plan(l.sets); err != nil {
			return Edited{}, err
		}
		plans = append(plans, l.plans...)
	}
	for _, p := range plans {
		done.Warnings = append(done.Warnings, p.warnings...)
	}
	raw, err := splice(before, allCuts(plans))
	if err != nil {
		return Edited{}, fmt.Errorf("%s: %w: %w", file, ErrUnsafe, err)
	}
	if bytes.Equal(raw, before) {
		return done, nil
	}
	afters, warnings, err := judge(lists, raw)
	if err != nil {
		return Edited{}, err
	}
	done.Warnings = append(done.Warnings, warnings...)
	done.Files = []File{{Path: file, Before: before, After: raw}}
	for i, l := range lists {
		for _, p := range l.plans {
			if len(p.cuts) > 0 {
				p.change.Line = afters[i].items[p.index].line()
				done.Changes = append(done.Changes, p.change)
			}
		}
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
