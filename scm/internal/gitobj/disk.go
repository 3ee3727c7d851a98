package gitobj

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const objectCache = 16 * cache.MiByte

// Disk opens the git directory dir (which need not be there yet) with go-git's own
// storage, alternates included.
func Disk(dir string) *filesystem.Storage {
	return filesystem.NewStorageWithOptions(unlocked{osfs.New(dir)}, cache.NewObjectLRU(objectCache),
		filesystem.Options{AlternatesFS: osfs.New("/")})
}

// unlocked hides git's lock files: go-git takes refs/heads/x.lock, which exists
// while a git process moves x, for a branch, and fails on an empty one.
type unlocked struct{ billy.Filesystem }

// ReadDir lists a directory without lock files.
func (u unlocked) ReadDir(path string) ([]fs.FileInfo, error) {
	list, err := u.Filesystem.ReadDir(path)
	return slices.DeleteFunc(list, func(i os.FileInfo) bool { return strings.HasSuffix(i.Name(), ".lock") }), err
}
