package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// quietly keeps this process to itself: it is called by its name, and what it holds
// can't be read or written by others of its user.
func quietly() {
	_ = os.WriteFile("/proc/self/comm", []byte("afoot-"+watchdogName), 0)
	if os.Geteuid() != 0 {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // never fails
	}
}
