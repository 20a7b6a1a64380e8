package output

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func mountTmpfs(dir string, size int) error {
	return unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
}

func mountRAM(dir string) error { return unix.Mount("ramfs", dir, "ramfs", 0, "") }

func unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }
