// Package overlay finds, edits and proves an environment's Kustomize image
// references. It works on any fs.FS (a commit on a forge, a directory, a map in
// a test), so that the edit and its proof are the same code in CI and on a
// laptop. It makes no network call and starts no process.
package overlay

import (
	"errors"

	"tagboat/image"
)

// The refusals that a caller tells apart. Each is wrapped with the file, the
// line, the cause and the next step; the files stay as they were.
var (
	// ErrNoKustomization is returned when a directory has no kustomization file,
	// or more than one.
	ErrNoKustomization = errors.New("no single kustomization file")
	// ErrNoEntry is returned when no images entry is meant by what was asked.
	ErrNoEntry = errors.New("no matching images entry")
	// ErrUnsafe is returned when the file cannot be edited without touching what
	// was not asked for (alias, block scalar, duplicate key, two documents …).
	ErrUnsafe = errors.New("cannot be edited safely")
	// ErrNoEffect is returned by Prove when the build after the edit equals the
	// build before: the entry matches nothing that runs.
	ErrNoEffect = errors.New("the edit changes nothing that runs")
	// ErrUnwanted is returned by Prove when the build changes in more than the
	// wanted image references.
	ErrUnwanted = errors.New("the edit changes more than the image")
	// ErrUnproven is returned by Prove under ProveRequired when the tree cannot be
	// built here.
	ErrUnproven = errors.New("cannot be proven")
	// ErrShared is returned when the file is also reached by another environment.
	ErrShared = errors.New("shared with another environment")
)

// Entry is one item of a kustomization's images list.
type Entry struct {
	Dir     string // the overlay directory that was asked for
	File    string // path of the kustomization file in the repository
	Line    int    // 1-based line on which the item starts; 0 for one to be added
	Name    string // the key, compared literally as kustomize does; need not be an image reference
	NewName string
	Tag     string // newTag as written, without an "@digest" inside it
	Digest  string // digest, as written in digest: or inside newTag
}

// Runs is the image reference that the entry makes run: newName or else name,
// with the tag and digest as written. A tag that the name itself carries says
// which resources match, not what they run, and is left out; one that newName
// carries runs where newTag and digest say nothing else.
func (e Entry) Runs() image.Reference {
	if e.NewName == "" {
		repository, _, _ := splitName(e.Name)
		return image.Reference{Repository: repository, Tag: e.Tag, Digest: e.Digest}
	}
	repository, tag, digest := splitName(e.NewName)
	if e.Tag != "" || e.Digest != "" {
		tag, digest = e.Tag, e.Digest
	}
	return image.Reference{Repository: repository, Tag: tag, Digest: digest}
}

// Want says which entries are meant.
type Want struct {
	Repository string // the image's repository
	Name       string // the entry's name; "" leaves it to Repository
	Add        bool   // a missing entry is to be added
	Dir        string // with Add: its overlay directory, where there are no entries that tell
}

// Pin is how a reference is written.
type Pin string

// The pins. A tag is never written without its digest.
const (
	PinTagAndDigest Pin = ""       // newTag and digest; digest alone where To has no tag
	PinDigest       Pin = "digest" // digest alone; newTag is removed
)

// Set is one entry and what it shall run.
type Set struct {
	Entry  Entry
	To     image.Reference // tag and digest to write; the digest is required
	Rename bool            // write newName: To.Repository
	Pin    Pin
}

// Edited is what an edit did. No file is written: After is for the caller to
// publish. Files whose bytes did not change are not in it.
type Edited struct {
	Files    []File
	Changes  []Change
	Warnings []string
}

// File is one edited file.
type File struct {
	Path          string
	Before, After []byte
}

// Change is the record of one entry's change, from which the commit message and
// the pull request are made.
type Change struct {
	Dir   string
	File  string
	Line  int // in After
	Entry string
	From  image.Reference // what ran: zero where the entry was added
	To    image.Reference // what runs now
	Added bool
}

// Mode says what to do when a tree cannot be built here.
type Mode string

// The modes of Prove.
const (
	ProveAuto     Mode = "auto"     // go on and say so
	ProveRequired Mode = "required" // refuse
	ProveOff      Mode = "off"      // do not build
)

// Status is the outcome of a proof.
type Status string

// The outcomes of a proof that let a promotion go on.
const (
	Proven  Status = "proven"
	Skipped Status = "skipped"
	Off     Status = "off"
)

// Proof is what building before and after has shown.
type Proof struct {
	Status   Status
	Reason   string // why it was skipped
	Changed  []Rendered
	Warnings []string // what a reviewer should know of a proven edit
}

// Rendered is one image reference that the build changed.
type Rendered struct {
	Dir       string // the overlay that was built
	Object    string // kind namespace/name, or kind name
	Field     string // e.g. spec.template.spec.containers[0].image
	Container string // its name, where it has one
	From, To  string
}
