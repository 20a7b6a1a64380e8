package main

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// closeInherited marks every descriptor from 3 on close-on-exec, so that what
// the daemon was started with never reaches a task.
func closeInherited() error {
	err := unix.CloseRange(3, ^uint(0)>>33, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Kernels before 5.11 do not know the call.
	dir, openErr := os.ReadDir("/proc/self/fd")
	if openErr != nil {
		return fmt.Errorf("mark inherited descriptors: %w (%w)", err, openErr)
	}
	for _, entry := range dir {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= 3 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// catchIgnored puts a handler on every signal that the daemon inherited as
// ignored (nohup does that to SIGHUP, a shell to SIGINT of a background job): an
// exec resets handled signals and keeps ignored ones. The daemon goes on
// ignoring them. The returned signals are those that were caught.
func catchIgnored(log *slog.Logger) []os.Signal {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		log.Warn("cannot see which signals are ignored; tasks may inherit them", "error", err)
		return nil
	}
	defer func() { _ = status.Close() }()
	var mask uint64
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "SigIgn:"); ok {
			mask, _ = strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		}
	}
	var caught []os.Signal
	for n := range 64 {
		if mask&(1<<n) != 0 {
			caught = append(caught, syscall.Signal(n+1))
		}
	}
	if len(caught) > 0 {
		swallow := make(chan os.Signal, 1) // a full channel drops signals, which is what is wanted
		signal.Notify(swallow, caught...)
	}
	return caught
}
