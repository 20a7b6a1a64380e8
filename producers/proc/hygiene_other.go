//go:build unix && !linux

package proc

import "syscall"

// hygiene does nothing here.
type hygiene struct{}

func (*hygiene) init() {}

func (*hygiene) close() {}

func (*hygiene) fork(path string, args []string, attr *syscall.ProcAttr) (int, error) {
	return syscall.ForkExec(path, args, attr)
}
