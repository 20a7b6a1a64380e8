package journal

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"
)

// tampered is a file layer that asks hook before each write, cut, sync and
// opening, which then fails with the hook's error.
type tampered struct {
	vfs.VFSFilename
	mu   sync.Mutex
	hook func(op, path string) error
	dies *crash
}

func (l *tampered) crash(c *crash) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dies = c
}

// dying lets a crash happen in the middle of a write.
func (l *tampered) dying(f *tamperedFile, p []byte, off int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dies != nil {
		l.dies.write(f, p, off)
	}
}

func (l *tampered) set(hook func(op, path string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hook = hook
}

func (l *tampered) ask(op, path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hook == nil {
		return nil
	}
	return l.hook(op, path)
}

// over gives the layer for open.
func (l *tampered) over(inner vfs.VFSFilename) vfs.VFSFilename {
	l.VFSFilename = inner
	return l
}

func (l *tampered) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if err := l.ask("open", name.String()); err != nil {
		return nil, flags, err
	}
	f, flags, err := l.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &tamperedFile{File: f, layer: l, path: name.String()}, flags, nil
}

type tamperedFile struct {
	vfs.File
	layer *tampered
	path  string
}

func (f *tamperedFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.layer.ask("write", f.path); err != nil {
		// As a disk does that fills up: some of it is there.
		n, _ := f.File.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	f.layer.dying(f, p, off)
	return f.File.WriteAt(p, off)
}

func (f *tamperedFile) Truncate(size int64) error {
	if err := f.layer.ask("cut", f.path); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *tamperedFile) Sync(flags vfs.SyncFlag) error {
	if err := f.layer.ask("sync", f.path); err != nil {
		return err
	}
	return f.File.Sync(flags)
}

// copied copies the files of a journal as they are at this moment.
func copied(t testing.TB, path, dir string) string {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, reserveSuffix) {
			continue
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), b, 0o600))
	}
	return filepath.Join(dir, filepath.Base(path))
}
