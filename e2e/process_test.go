package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is one live process that a daemon has started.
type process struct {
	pid     int
	cmdline string
}

func (p process) String() string { return fmt.Sprintf("%d(%s)", p.pid, p.cmdline) }

// alive gives the live processes that carry the daemon's mark, the daemon itself
// left out.
func (d *daemon) alive() []process { return d.aliveWith("") }

// aliveOf gives the live processes of one task.
func (d *daemon) aliveOf(id string) []process { return d.aliveWith("AFOOT_TASK_ID=" + id) }

// aliveWith gives those whose environment has also another variable.
func (d *daemon) aliveWith(variable string) []process {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(d.t, err)
	var found []process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || (d.cmd != nil && d.cmd.Process != nil && pid == d.cmd.Process.Pid) {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !has(environ, "E2E_MARK="+d.mark) {
			continue
		}
		if variable != "" && !has(environ, variable) {
			continue
		}
		if !living(pid) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Join(strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00"), " ")
		found = append(found, process{pid: pid, cmdline: words})
	}
	return found
}

func has(environ []byte, variable string) bool {
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if string(kv) == variable {
			return true
		}
	}
	return false
}

// living decides by the state letter: zombies and dead ones do not live, although
// signals to them succeed.
func living(pid int) bool {
	letter := state(pid)
	return letter != 0 && letter != 'Z' && letter != 'X'
}

// state gives the state letter of a process, or 0 if there is none.
func state(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	rest := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// gone waits until no process of the task lives.
func (d *daemon) gone(t *testing.T, id string, within time.Duration) {
	t.Helper()
	eventually(t, within, "processes of "+id+" are gone", func() bool { return len(d.aliveOf(id)) == 0 })
}

// descriptors counts the daemon's open descriptors.
func (d *daemon) descriptors() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	require.NoError(d.t, err)
	return len(entries)
}

// residentKiB gives the daemon's resident memory.
func (d *daemon) residentKiB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return kib
		}
	}
	require.FailNow(t, "no VmRSS")
	return 0
}
