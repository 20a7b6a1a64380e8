package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"afoot/producers/proc"
)

// watchdogName is the hidden command that the daemon runs beside itself.
const watchdogName = "watchdog"

// What the watchdog inherits: the pipe from the daemon, and the memory that lists the
// processes of tasks.
const (
	watchdogPipe = 3
	watchdogRoll = 4
)

// farewell is what the daemon says when it ends as it should. Anything else on the pipe
// is a line that names what it would leave.
const farewell = '.'

// watchdogPatience bounds the end of processes that don't end, in the kernel's hands.
const watchdogPatience = time.Minute

// watchdogMemory is far above what it needs; it makes the collector return the rest.
const watchdogMemory = 8 << 20

// runWatchdog waits for the end of the daemon, and ends the processes of tasks if that
// was not in order: killed, out of memory, in a panic. It does nothing else, holds
// nothing else of the daemon's, in particular not its lock, and is deaf to what a
// terminal or a supervisor sends to everybody.
func runWatchdog() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	debug.SetGCPercent(10)
	debug.SetMemoryLimit(watchdogMemory)
	quietly()
	var will lastWill
	known := false
	pipe := bufio.NewReaderSize(os.NewFile(watchdogPipe, "daemon"), 1024)
	for {
		line, err := pipe.ReadSlice('\n')
		switch {
		case err != nil:
			if !known {
				return exitOK // it never began
			}
			return endRemains(will, proc.Ticks())
		case line[0] == farewell:
			return exitOK
		}
		var next lastWill
		if json.Unmarshal(line, &next) == nil {
			will, known = next, true
		}
	}
}

func endRemains(will lastWill, died uint64) int {
	list, _ := proc.ReadRoll(os.NewFile(watchdogRoll, "roll")) // without it there is the rest
	ctx, cancel := context.WithTimeout(context.Background(), watchdogPatience)
	defer cancel()
	if _, err := will.execute(ctx, list, died); err != nil {
		return exitFailed
	}
	return exitOK
}
