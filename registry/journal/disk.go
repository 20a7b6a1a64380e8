package journal

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// disk is the file layer of one database: files are made with mode 0600, links are
// not followed, and the system's last complaint is remembered, which SQLite
// reduces to a code. It belongs to the goroutine of its connection.
type disk struct {
	inner vfs.VFSFilename
	name  string
	// looking forbids every change, and locks nothing.
	looking bool
	// alone shows a log as empty to one that looks.
	alone bool
	// main is the database of one that looks.
	main  vfs.File
	fault error
}

// layer stands between a disk and the system; nil for none.
type layer func(vfs.VFSFilename) vfs.VFSFilename

// newDisk makes a disk known to SQLite; the caller closes it.
func newDisk(over layer) (*disk, error) {
	inner, ok := vfs.Find("os").(vfs.VFSFilename)
	if !ok {
		return nil, errors.New("the database driver has no file layer")
	}
	if over != nil {
		inner = over(inner)
	}
	d := &disk{inner: inner, name: "journal-" + rand.Text()}
	vfs.Register(d.name, d)
	return d, nil
}

func (d *disk) close() { vfs.Unregister(d.name) }

// forget clears the last complaint.
func (d *disk) forget() { d.fault = nil }

// why is err with what the system said of it.
func (d *disk) why(err error) error {
	if err == nil || d.fault == nil {
		return err
	}
	return errors.Join(err, d.fault)
}

func (d *disk) note(err error) error {
	if err != nil {
		d.fault = err
	}
	return err
}

// Open is not used: SQLite asks for OpenFilename.
func (d *disk) Open(string, vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return nil, 0, sqlite3.CANTOPEN
}

// OpenFilename implements [vfs.VFSFilename].
func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if d.looking {
		return d.look(name, flags)
	}
	if name != nil && flags&vfs.OPEN_CREATE != 0 {
		if err := touch(name.String()); err != nil {
			return nil, flags, d.note(err)
		}
	}
	f, flags, err := d.inner.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, d.note(err)
	}
	return &file{File: f, disk: d}, flags, nil
}

// look opens a file that is there for reading, and shows one that is not as empty.
func (d *disk) look(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	flags = flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE) | vfs.OPEN_READONLY
	if d.alone && flags&vfs.OPEN_WAL != 0 {
		return &seen{}, flags, nil
	}
	f, flags, err := d.inner.OpenFilename(name, flags)
	if errors.Is(err, fs.ErrNotExist) && flags&vfs.OPEN_WAL != 0 {
		return &seen{}, flags, nil
	}
	if err != nil {
		return nil, flags, d.note(err)
	}
	if flags&vfs.OPEN_MAIN_DB != 0 {
		d.main = f
	}
	return &seen{File: f}, flags, nil
}

// touch makes a file with the right mode unless it is there.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Delete implements [vfs.VFS].
func (d *disk) Delete(name string, syncDir bool) error {
	if d.looking {
		return sqlite3.IOERR_DELETE
	}
	err := d.inner.Delete(name, syncDir)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.note(err)
}

// Access implements [vfs.VFS].
func (d *disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return d.inner.Access(name, flags)
}

// FullPathname implements [vfs.VFS]: paths are whole already.
func (d *disk) FullPathname(name string) (string, error) { return name, nil }

// file is an open file. It offers no shared memory: the index of the log is on the
// heap, and the database belongs to one connection.
type file struct {
	vfs.File
	disk *disk
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.disk.note(err)
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return n, err
	}
	return n, f.disk.note(err)
}

func (f *file) Truncate(size int64) error     { return f.disk.note(f.File.Truncate(size)) }
func (f *file) Sync(flags vfs.SyncFlag) error { return f.disk.note(f.File.Sync(flags)) }

// SizeHint implements [vfs.FileSizeHint]: growth fails before it begins.
func (f *file) SizeHint(size int64) error {
	if hinted, ok := f.File.(vfs.FileSizeHint); ok {
		return f.disk.note(hinted.SizeHint(size))
	}
	return nil
}

// seen is a file that is only looked at; the zero one is empty.
type seen struct{ vfs.File }

func (f *seen) ReadAt(p []byte, off int64) (int, error) {
	if f.File == nil {
		return 0, io.EOF
	}
	return f.File.ReadAt(p, off)
}

func (f *seen) Size() (int64, error) {
	if f.File == nil {
		return 0, nil
	}
	return f.File.Size()
}

func (f *seen) Close() error {
	if f.File == nil {
		return nil
	}
	return f.File.Close()
}

func (f *seen) WriteAt([]byte, int64) (int, error)              { return 0, sqlite3.READONLY }
func (f *seen) Truncate(int64) error                            { return sqlite3.READONLY }
func (f *seen) Sync(vfs.SyncFlag) error                         { return nil }
func (f *seen) Lock(vfs.LockLevel) error                        { return nil }
func (f *seen) Unlock(vfs.LockLevel) error                      { return nil }
func (f *seen) CheckReservedLock() (bool, error)                { return false, nil }
func (f *seen) SectorSize() int                                 { return 4096 }
func (f *seen) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
