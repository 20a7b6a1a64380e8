package api

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the peer has closed its side of the connection, whatever it
// sent before is read or not.
func hungUp(conn syscall.Conn) (hung bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(at, 0)
		hung = err == nil && n > 0
	})
	return hung
}
