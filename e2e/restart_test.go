package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// orphaned is how long a process may outlive the daemon that started it.
const orphaned = 2 * time.Second

// die ends the daemon by SIGKILL to its own pid alone: what it leaves is left to
// whatever ends it.
func (d *daemon) die(t *testing.T) {
	t.Helper()
	require.NoError(t, d.cmd.Process.Kill())
	<-d.exited
	require.Equal(t, syscall.SIGKILL, d.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

// again starts the daemon on what the last one left.
func (d *daemon) again() {
	d.t.Helper()
	d.launch()
	d.ready()
}

// nextLife gives the next launch, and all that it starts, a mark of its own.
func (d *daemon) nextLife(n int) { d.env = append(d.env, fmt.Sprintf("E2E_LIFE=%d", n)) }

// ofLife gives the live processes of that launch, the daemon itself left out.
func (d *daemon) ofLife(n int) []process { return d.aliveWith(fmt.Sprintf("E2E_LIFE=%d", n)) }

// watchdogs gives the live watchdogs that the running daemon has.
func (d *daemon) watchdogs() []int {
	var found []int
	for _, pid := range running("afoot", "watchdog") {
		if parent(pid) == d.cmd.Process.Pid {
			found = append(found, pid)
		}
	}
	return found
}

// parent gives the parent of a process, or 0.
func parent(pid int) int {
	n, _ := strconv.Atoi(statField(pid, 1))
	return n
}

// statField gives a field of /proc/PID/stat, counted from the state letter.
func statField(pid, n int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= n {
		return ""
	}
	return string(fields[n])
}

// same compares what never changes of an ended task.
func (s snapshot) same(other snapshot) bool {
	plain := func(s snapshot) string {
		finished := int64(0)
		if s.FinishedAt != nil {
			finished = *s.FinishedAt
		}
		return fmt.Sprint(s.ID, s.Kind, s.Label, s.OwnerSession, s.Agent, s.Status, s.Detail, s.Result,
			s.StartedAt, finished, s.OutputBytes, s.DroppedBytes)
	}
	return plain(s) == plain(other)
}

// lostDetail is what is known of a task that ran when the daemon died.
const lostDetail = "daemon ended while the task ran"

// wasLost checks the record of a task that ran when the daemon died.
func wasLost(t *testing.T, s snapshot) {
	t.Helper()
	require.Equal(t, "failed", s.Status, "%+v", s)
	require.Equal(t, lostDetail, s.Detail)
	require.NotNil(t, s.FinishedAt)
	require.GreaterOrEqual(t, *s.FinishedAt, s.StartedAt)
}
