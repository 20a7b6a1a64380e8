package bash

import (
	"testing"

	"github.com/stretchr/testify/require"

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
	task := stand.start(fields{"command": "nice; nice true", "nice": 7})
	require.Equal(t, "exit code: 0", task.end().Detail)
	require.Equal(t, "7\n", task.output())
	require.Contains(t, described(t, task), `"nice":7`)
}

func TestMemoryAndProcessesAreLimited(t *testing.T) {
	stand := newStand(t)
	if err := stand.host.CanLimit(true, true); err != nil {
		t.Skipf("no limits to be had: %v", err)
	}
	task := stand.start(fields{"command": "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}", "memoryMaxBytes": 32 << 20})
	require.Equal(t, registry.StatusKilled, task.end().Status)
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
