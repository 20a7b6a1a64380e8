package main

import (
	"errors"
	"fmt"
	"strings"

	"afoot/api/client"
)

// Exit codes of every command. `afoot run` exits with the task's own code and
// with exitRun where others exit with exitFailed, exitUsage or exitNoDaemon.
const (
	exitOK       = 0
	exitFailed   = 1   // the daemon refused, or something broke
	exitUsage    = 2   // wrong arguments or configuration; nothing was tried
	exitNoDaemon = 3   // no daemon answers
	exitRun      = 125 // `afoot run` itself failed
	exitSignal   = 128 // plus the number of the signal that ended the work
)

// exitError ends the process with a code. Without err nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// usageErrorf makes an error about the command line.
func usageErrorf(format string, args ...any) error {
	return exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// tell prints what went wrong, with --json as an object: the daemon's problem, or code and
// detail of what went wrong here.
func (a *app) tell(err error, code int) {
	text := oneLine(err)
	if !a.json {
		fmt.Fprintln(a.stderr, "afoot:", text)
		return
	}
	if refusal, ok := errors.AsType[*client.RefusalError](err); ok {
		problem := refusal.Problem
		if strings.Contains(err.Error(), "\n") { // there are others
			problem.Detail = text
		}
		_ = encodeJSON(a.stderr, problem) // there is nobody else to tell
		return
	}
	word := "failed"
	switch code {
	case exitUsage:
		word = "usage"
	case exitNoDaemon:
		word = "no_daemon"
	}
	_ = encodeJSON(a.stderr, map[string]string{"code": word, "detail": text})
}

// oneLine makes an error that joins several fit for a terminal.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
