package bash

import (
	"encoding/json"
	"fmt"
	"strings"

	"afoot/producers/proc"
	"afoot/registry"
)

// cause says why a command was stopped.
type cause int

const (
	none cause = iota
	cancelled
	timedOut
)

// Bounds of what is said about leftovers.
const (
	maxLeftovers     = 100
	maxLeftoverBytes = 200
)

// ending is what is known when a command has ended.
type ending struct {
	exit      proc.Exit
	cause     cause
	timeoutMs int64
	left      []proc.Member
	// unsure says that somebody may be left whom nobody could name.
	unsure bool
	losses losses
	// overMemory says that the kernel killed somebody for the limit.
	overMemory     bool
	memoryMaxBytes int64
}

// losses are why output could not be kept; empty if it could.
type losses struct{ main, stderr string }

type leftover struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

type result struct {
	ExitCode  *int       `json:"exitCode,omitempty"`
	Signal    string     `json:"signal,omitempty"`
	TimedOut  bool       `json:"timedOut,omitempty"`
	Leftovers []leftover `json:"leftovers,omitempty"`
}

// plain says that a command ended well, and that there is nothing more to say.
func (e ending) plain() bool {
	return e.exit == proc.Exit{} && e.cause == none && len(e.left) == 0 && !e.unsure && e.losses == losses{} && !e.overMemory
}

// outcome is [ending.outcome]. That of most commands is the same, and is there once.
func (p *Producer) outcome(e ending) registry.Outcome {
	if e.plain() {
		return p.well
	}
	return e.outcome()
}

// outcome words an ending.
func (e ending) outcome() registry.Outcome {
	status := registry.StatusCompleted
	if e.cause != none || e.exit.Signal != 0 {
		status = registry.StatusKilled
	}
	return registry.Outcome{Status: status, Detail: e.detail(), Result: e.result()}
}

func (e ending) detail() string {
	var detail strings.Builder
	if e.cause == timedOut {
		fmt.Fprintf(&detail, "timed out after %dms", e.timeoutMs)
	} else {
		detail.WriteString(e.exit.String())
	}
	if e.overMemory {
		fmt.Fprintf(&detail, "; over its limit of %d bytes of memory", e.memoryMaxBytes)
	}
	switch n := len(e.left); n {
	case 0:
		if e.unsure {
			detail.WriteString("; processes may be left running")
		}
	case 1:
		detail.WriteString("; 1 process left running")
	default:
		fmt.Fprintf(&detail, "; %d processes left running", n)
	}
	if e.losses.main != "" {
		detail.WriteString("; output was lost: " + e.losses.main)
	}
	if e.losses.stderr != "" {
		detail.WriteString("; stderr was lost: " + e.losses.stderr)
	}
	return detail.String()
}

func (e ending) result() json.RawMessage {
	r := result{TimedOut: e.cause == timedOut}
	if e.exit.Signal != 0 {
		r.Signal = proc.SignalName(e.exit.Signal)
	} else {
		r.ExitCode = &e.exit.Code
	}
	for _, member := range e.left[:min(len(e.left), maxLeftovers)] {
		r.Leftovers = append(r.Leftovers, leftover{member.PID, member.Command(maxLeftoverBytes)})
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil // never: numbers and valid strings
	}
	return data
}
