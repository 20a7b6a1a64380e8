package proc

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrLost means that somebody else took a process's exit status.
var ErrLost = errors.New("the exit status was taken by somebody else")

// Exit is how a process ended: by a signal, if Signal is not 0, else with Code.
type Exit struct {
	Code   int
	Signal syscall.Signal
}

// String is as people are told of it: "exit code: 3", "signal: SIGKILL".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "signal: " + SignalName(e.Signal)
	}
	return fmt.Sprintf("exit code: %d", e.Code)
}

// SignalName gives the name of a signal, such as SIGTERM.
func SignalName(signal syscall.Signal) string {
	if name := unix.SignalName(signal); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(signal))
}

// SignalByName gives the signal of a name with or without SIG, such as INT.
func SignalByName(name string) (syscall.Signal, bool) {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	signal := unix.SignalNum(name)
	return signal, signal != 0
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Signal: status.Signal()}
	}
	return Exit{Code: status.ExitStatus()}
}

// reap takes the status of a child that has exited; it blocks if it has not.
func reap(pid int) (Exit, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return Exit{}, ErrLost
		case err != nil:
			return Exit{}, fmt.Errorf("wait for process %d: %w", pid, err)
		default:
			return exitOf(status), nil
		}
	}
}
