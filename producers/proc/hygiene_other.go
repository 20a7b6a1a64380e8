//go:build unix && !linux

package proc

import "syscall"

// hygiene does nothing here.
type hygiene struct{}

func (*hygiene) init() {}

func (*hygiene) close() {}

func (*hygiene) fork(path string, args []string, attr *syscall.ProcAttr, nice int) (int, error) {
	pid, err := syscall.ForkExec(path, args, attr)
	if err == nil && nice != 0 {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, nice)
	}
	return pid, err
}
