package journal

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// allocate gives f that many bytes of space.
func allocate(f *os.File, size int64) error {
	err := fallocate(f, 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fill(f, size)
	}
	return err
}

// claim reserves space behind the end of a file, as far as it can be had.
func claim(path string, size int64) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if info, err := f.Stat(); err == nil {
		_ = fallocate(f, unix.FALLOC_FL_KEEP_SIZE, info.Size(), size)
	}
}

func fallocate(f *os.File, mode uint32, off, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), mode, off, size)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fallocate", err)
		}
	}
}
