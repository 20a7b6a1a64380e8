package bash

import (
	"os"

	"golang.org/x/sys/unix"

	"afoot/producers/proc"
)

func pipe() (fds [2]int, err error) {
	err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return fds, err
}

// own gives both ends of a pipe to a user.
func own(pipe int, user *proc.User) error {
	return os.NewSyscallError("fchown", unix.Fchown(pipe, int(user.UID), int(user.GID)))
}

// mayNice says whether this program may make its children less nice than itself.
func mayNice(by int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&header, &sets[0]) == nil && sets[0].Effective>>unix.CAP_SYS_NICE&1 == 1 {
		return true
	}
	// Both count down from 20.
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	var limit unix.Rlimit
	return err == nil && unix.Getrlimit(unix.RLIMIT_NICE, &limit) == nil && uint64(own-by) <= limit.Cur
}

// nameless makes a file in memory.
func nameless() (*os.File, error) {
	fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "command"), nil
}

// access says whether a directory may be entered.
func access(dir string) error {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.X_OK, unix.AT_EACCESS)
}
