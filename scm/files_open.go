package scm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

// cache loads each key once, however many ask at the same time. It keeps what was
// found and what is not there, and forgets any other failure.
type cache[T any] struct {
	mu    sync.Mutex
	items map[string]*cached[T]
}

type cached[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func (c *cache[T]) get(key string, load func() (T, error)) (T, error) {
	c.mu.Lock()
	item, ok := c.items[key]
	if ok {
		c.mu.Unlock()
		<-item.done
		return item.value, item.err
	}
	if c.items == nil {
		c.items = map[string]*cached[T]{}
	}
	item = &cached[T]{done: make(chan struct{})}
	c.items[key] = item
	c.mu.Unlock()

	defer close(item.done)
	item.value, item.err = load()
	if item.err != nil && !errors.Is(item.err, fs.ErrNotExist) {
		c.mu.Lock()
		delete(c.items, key)
		c.mu.Unlock()
	}
	return item.value, item.err
}

type fileInfo struct{ e FileEntry }

func (i fileInfo) Name() string       { return i.e.Name }
func (i fileInfo) Size() int64        { return i.e.Size }
func (i fileInfo) Mode() fs.FileMode  { return i.e.Mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.e.Mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

type openFile struct {
	info   fileInfo
	name   string
	fsys   *Files
	reader *bytes.Reader
	closed bool
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info, nil }

func (o *openFile) Read(b []byte) (int, error) {
	if o.closed {
		return 0, pathError("read", o.name, fs.ErrClosed)
	}
	if err := notAFile(o.info.e.Mode); err != nil {
		return 0, pathError("read", o.name, err)
	}
	if o.reader == nil {
		c, err := o.fsys.content("read", o.name)
		if err != nil {
			return 0, err
		}
		o.reader = bytes.NewReader(c.bytes)
	}
	return o.reader.Read(b)
}

func (o *openFile) Close() error {
	o.closed = true
	return nil
}

type openDir struct {
	info fileInfo
	name string
	fsys *Files
	rest []fs.DirEntry
	read bool
}

func (o *openDir) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openDir) Close() error               { return nil }

func (o *openDir) Read([]byte) (int, error) {
	return 0, pathError("read", o.name, fmt.Errorf("is a directory: %w", fs.ErrInvalid))
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !o.read {
		rest, err := o.fsys.ReadDir(o.name)
		if err != nil {
			return nil, err
		}
		o.rest, o.read = rest, true
	}
	if n <= 0 {
		n = len(o.rest)
	} else if len(o.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.rest))
	list := o.rest[:n]
	o.rest = o.rest[n:]
	return list, nil
}
