package bash

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/producers/proc"
)

func TestDetails(t *testing.T) {
	for want, end := range map[string]ending{
		"exit code: 0":                                         {},
		"exit code: 0; output was lost: x":                     {losses: losses{main: "x"}},
		"exit code: 0; stderr was lost: x":                     {losses: losses{stderr: "x"}},
		"exit code: 0; 2 processes left running":               {left: make([]proc.Member, 2)},
		"exit code: 0; output was lost: x; stderr was lost: y": {losses: losses{"x", "y"}},
		"signal: SIGKILL; over its limit of 32 bytes of memory": {
			exit: proc.Exit{Signal: syscall.SIGKILL}, overMemory: true, memoryMaxBytes: 32,
		},
		"exit code: 1; over its limit of 32 bytes of memory; 1 process left running": {
			exit: proc.Exit{Code: 1}, overMemory: true, memoryMaxBytes: 32, left: make([]proc.Member, 1),
		},
	} {
		require.Equal(t, want, end.detail())
	}
}
