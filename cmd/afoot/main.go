// Command afoot is the daemon and the tool to talk to it. It knows every room
// and is known by none: config.go maps the environment, wire.go puts the rooms
// together, the cmd_ files are one command each.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == watchdogName {
		os.Exit(runWatchdog())
	}
	if os.Getpid() == 1 {
		os.Exit(runInit())
	}
	luggage, err := arrive()
	if err != nil {
		fmt.Fprintln(os.Stderr, "afoot:", oneLine(err))
		os.Exit(exitFailed)
	}
	os.Exit(start(os.Args[1:], os.Stdout, os.Stderr, luggage))
}

// start runs one command line and gives its exit code. The luggage is that of an earlier
// image of this process, nil where there was none.
func start(args []string, stdout, stderr io.Writer, from *luggage) int {
	a := &app{stdout: stdout, stderr: stderr, from: from}
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return exitOK
	}
	code := exitFailed
	if !a.parsed {
		code = exitUsage
		a.json = a.json || slices.Contains(args, "--json")
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		if exit.err == nil {
			return exit.code
		}
		code = exit.code
	}
	a.tell(err, code)
	if cmd.Name() == runName {
		return exitRun // other codes are the task's
	}
	return code
}
