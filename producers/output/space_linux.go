package output

import (
	"os"

	"golang.org/x/sys/unix"
)

// checkSpace tells a full or read-only file system, which a file that was made
// ahead would hide.
func checkSpace(dir int) error {
	var fs unix.Statfs_t
	err := unix.Fstatfs(dir, &fs)
	switch {
	case err != nil:
		return nil //nolint:nilerr // writing will tell
	case fs.Flags&unix.ST_RDONLY != 0:
		return unix.EROFS
	case fs.Blocks > 0 && free(&fs) == 0:
		return unix.ENOSPC
	default:
		return nil
	}
}

// free counts the blocks that this user can have: some are root's alone.
func free(fs *unix.Statfs_t) uint64 {
	if os.Geteuid() == 0 {
		return fs.Bfree
	}
	return fs.Bavail
}

// room gives the free bytes of the file system that an open file is on.
func room(file int) int64 {
	var fs unix.Statfs_t
	if unix.Fstatfs(file, &fs) != nil {
		return 0
	}
	return int64(free(&fs)) * fs.Bsize
}
