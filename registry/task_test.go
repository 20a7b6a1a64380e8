package registry_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestIDParse(t *testing.T) {
	for _, c := range []struct {
		id   registry.ID
		kind registry.Kind
		n    uint64
	}{
		{"bash-1", "bash", 1},
		{"bash-10", "bash", 10},
		{"sub-agent-7", "sub-agent", 7},
		{"a--1", "a-", 1},
		{"bash-1-2", "bash-1", 2},
		{"界-3", "界", 3},
		{"bash-18446744073709551615", "bash", math.MaxUint64},
	} {
		kind, n, ok := c.id.Parse()
		require.True(t, ok, "%q", c.id)
		require.Equal(t, c.kind, kind, "%q", c.id)
		require.Equal(t, c.n, n, "%q", c.id)
		require.Equal(t, c.id, registry.NewID(kind, n))
	}
}

func TestIDParseRefuses(t *testing.T) {
	for _, id := range []registry.ID{
		"", "-", "bash", "bash-", "-1", "1", "bash-0", "bash-00", "bash-01", "bash-+1", "bash- 1",
		"bash-1 ", "bash-1x", "bash-0x1", "bash-1_0", "bash-1.0", "bash-1e3", "bash-１", "bash-٣",
		"bash-18446744073709551616", "bash-99999999999999999999999", "bash-1\x00", "bash-1\n",
	} {
		kind, n, ok := id.Parse()
		require.False(t, ok, "%q", id)
		require.Empty(t, kind, "%q", id)
		require.Zero(t, n, "%q", id)
	}
}

// FuzzIDParse: an id that parses is exactly the one that is made of its parts.
func FuzzIDParse(f *testing.F) {
	for _, seed := range []string{"bash-1", "bash-01", "-1", "a-b-2", "bash-18446744073709551616"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kind, n, ok := registry.ID(text).Parse()
		if ok {
			require.NotEmpty(t, kind)
			require.NotZero(t, n)
			require.Equal(t, registry.ID(text), registry.NewID(kind, n))
		} else if digits := text[strings.LastIndexByte(text, '-')+1:]; digits == "1" {
			require.True(t, text == "1" || text == "-1", "%q was made by NewID", text)
		}
	})
}

func TestStatus(t *testing.T) {
	for status, want := range map[registry.Status]struct{ valid, terminal bool }{
		registry.StatusRunning:   {valid: true},
		registry.StatusStopping:  {valid: true},
		registry.StatusCompleted: {valid: true, terminal: true},
		registry.StatusKilled:    {valid: true, terminal: true},
		registry.StatusFailed:    {valid: true, terminal: true},
		"":                       {},
		"Running":                {},
		"done":                   {},
	} {
		require.Equal(t, want.valid, status.Valid(), "%q", status)
		require.Equal(t, want.terminal, status.Terminal(), "%q", status)
	}
}

func TestOwnerUnowned(t *testing.T) {
	require.True(t, registry.Owner{}.Unowned())
	for _, o := range []registry.Owner{{Session: "s"}, {Agent: "default"}, {Incarnation: 1}} {
		require.False(t, o.Unowned(), "%+v", o)
	}
}
