package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// runInit is what afoot does as process 1 of a container: it runs itself once
// more as its only child, hands signals on to it, and reaps everybody that is
// left to it. The daemon then waits for its own children only, and no orphan
// stays a zombie. When the child ends, so does the container.
func runInit() int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "afoot:", err)
		return exitFailed
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	child, err := syscall.ForkExec(self, os.Args, &syscall.ProcAttr{
		Env:   os.Environ(), //nolint:forbidigo // handed on unread
		Files: []uintptr{0, 1, 2},
		// A group of its own, and the foreground of a terminal: else the terminal's
		// signals would come twice, from the terminal and from here.
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: foreground(), Ctty: 0},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "afoot: start as a child of process 1: %v\n", err)
		return exitFailed
	}
	for {
		if code, ended := reap(child); ended {
			return code
		}
		sig, ok := (<-signals).(syscall.Signal)
		if ok && handOn(sig) {
			_ = syscall.Kill(child, sig) // it may have ended this instant
		}
	}
}

// foreground reports whether standard input is the terminal that this process
// belongs to.
func foreground() bool {
	_, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil
}

// handOn leaves out what is process 1's own affair: its dead, and the signal
// that Go's scheduler sends to itself.
func handOn(sig syscall.Signal) bool {
	return sig != syscall.SIGCHLD && sig != syscall.SIGURG
}

// reap collects the dead until none is left, and reports the end of the child.
func reap(child int) (code int, ended bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil || pid == 0:
			return code, ended
		case pid != child:
			continue
		case status.Signaled():
			code, ended = exitSignal+int(status.Signal()), true
		default:
			code, ended = status.ExitStatus(), true
		}
	}
}
