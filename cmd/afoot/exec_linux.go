package main

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// canReplace says whether work can be handed over to another image of this process.
const canReplace = true

// luggageFile makes a file in memory that is open across an exec.
func luggageFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("afoot", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the hand-over: %w", err)
	}
	return os.NewFile(uintptr(fd), "luggage"), nil
}

// closeAllOnExec has only the standard descriptors inherited.
func closeAllOnExec() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	if err != nil {
		return err
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
