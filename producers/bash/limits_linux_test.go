package bash

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"afoot/registry"
)

func TestLimitsThatCannotBeHadAreRefusedWithTheReason(t *testing.T) {
	stand := newStand(t, func(c *Config) { c.Net = "group" })
	for _, c := range []struct {
		fields fields
		named  string
	}{
		{fields{"memoryMaxBytes": 1 << 30}, "memoryMaxBytes can't be had here: "},
		{fields{"pidsMax": 10}, "pidsMax can't be had here: "},
		{fields{"memoryMaxBytes": 1 << 30, "pidsMax": 10}, "memoryMaxBytes and pidsMax can't be had here: "},
	} {
		c.fields["command"] = "true"
		_, err := stand.prepare(c.fields)
		require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
		require.ErrorContains(t, err, c.named)
		reason := stand.host.CanLimit(c.fields["memoryMaxBytes"] != nil, c.fields["pidsMax"] != nil)
		require.ErrorContains(t, err, reason.Error())
	}
}

func TestNice(t *testing.T) {
	stand := newStand(t)
	level := func(more fields) int {
		more["command"] = "nice"
		task := stand.start(more)
		require.Equal(t, "exit code: 0", task.end().Detail)
		level, err := strconv.Atoi(strings.TrimSpace(task.output()))
		require.NoError(t, err)
		return level
	}
	own := level(fields{})
	require.Equal(t, min(own+7, maxNice), level(fields{"nice": 7}))
	require.Equal(t, maxNice, level(fields{"nice": maxNice}))
	require.Equal(t, own, level(fields{}), "it was that command's alone")
	if mayNice(-1) {
		require.Equal(t, own-1, level(fields{"nice": -1}))
	}
}

// TestNiceNeedsTheRight takes the right away for a moment.
func TestNiceNeedsTheRight(t *testing.T) {
	stand := newStand(t)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.Capget(&header, &sets[0]))
	less := sets
	less[0].Effective &^= 1 << unix.CAP_SYS_NICE
	require.NoError(t, unix.Capset(&header, &less[0])) // of this thread
	defer func() { require.NoError(t, unix.Capset(&header, &sets[0])) }()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NICE, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NICE, &unix.Rlimit{Cur: 0, Max: old.Max}))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NICE, &old)) }()
	_, err := stand.prepare(fields{"command": "true", "nice": -1})
	require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
	require.ErrorContains(t, err, "nice -1 can't be had here")
	_, err = stand.prepare(fields{"command": "true", "nice": 1})
	require.NoError(t, err)
}

func TestMemoryAndProcessesAreLimited(t *testing.T) {
	stand := newStand(t)
	if err := stand.host.CanLimit(true, true); err != nil {
		t.Skipf("no limits to be had: %v", err)
	}
	task := stand.start(fields{"command": "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}", "memoryMaxBytes": 32 << 20})
	o := task.end()
	require.Equal(t, registry.StatusKilled, o.Status)
	require.Equal(t, "signal: SIGKILL; over its limit of 33554432 bytes of memory", o.Detail)
	require.Contains(t, described(t, task), `"memoryMaxBytes":33554432`)
	task = stand.start(fields{"command": "for i in 1 2 3 4 5 6 7 8; do sleep 344 & done; echo made", "pidsMax": 4})
	task.end()
	require.Contains(t, task.output(), "Resource temporarily unavailable")
	<-task.StopLeftovers("")
}

func described(t *testing.T, task *task) string {
	t.Helper()
	request, err := task.Request()
	require.NoError(t, err)
	return string(request)
}
