package api

import (
	"net"

	"golang.org/x/sys/unix"
)

// tcpClose is the state of a connection that was reset (TCP_CLOSE in the kernel).
const tcpClose = 7

func wasReset(conn *net.TCPConn) (reset bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		reset = err == nil && info.State == tcpClose
	})
	return reset
}
