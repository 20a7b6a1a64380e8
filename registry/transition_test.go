package registry_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func living() []registry.Status {
	return []registry.Status{registry.StatusRunning, registry.StatusStopping}
}

func terminal() []registry.Status {
	return []registry.Status{registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed}
}

func TestStopped(t *testing.T) {
	got, changed := registry.Snapshot{ID: "bash-1", Status: registry.StatusRunning}.Stopped()
	require.True(t, changed)
	require.Equal(t, registry.Snapshot{ID: "bash-1", Status: registry.StatusStopping}, got)
	for _, status := range append(terminal(), registry.StatusStopping) {
		before := registry.Snapshot{Status: status}
		got, changed := before.Stopped()
		require.False(t, changed, "%s", status)
		require.Equal(t, before, got)
	}
}

func TestMarkedReported(t *testing.T) {
	got, changed := registry.Snapshot{Status: registry.StatusCompleted}.MarkedReported()
	require.True(t, changed)
	require.Equal(t, registry.Snapshot{Status: registry.StatusCompleted, Reported: true}, got)
	again, changed := got.MarkedReported()
	require.False(t, changed)
	require.Equal(t, got, again)
}

func TestSettledKeepsTheFirstOutcome(t *testing.T) {
	at := time.UnixMilli(1234)
	outcome := registry.Outcome{
		Status: registry.StatusKilled, Detail: "signal: SIGKILL", Result: json.RawMessage(`{}`), Output: "text",
	}
	for _, status := range living() {
		before := registry.Snapshot{ID: "bash-1", Status: status, Reported: status == registry.StatusStopping}
		got, first := before.Settled(outcome, at)
		require.True(t, first)
		want := before
		want.Status, want.Detail, want.Result, want.FinishedAt = outcome.Status, outcome.Detail, outcome.Result, at
		require.Equal(t, want, got)

		again, first := got.Settled(registry.Outcome{Status: registry.StatusFailed, Detail: "late"}, at.Add(1))
		require.False(t, first)
		require.Equal(t, got, again)
	}
}

func TestSettledForegroundIsReported(t *testing.T) {
	for _, status := range terminal() {
		for _, foreground := range []bool{true, false} {
			before := registry.Snapshot{Status: registry.StatusRunning, Foreground: foreground}
			got, first := before.Settled(registry.Outcome{Status: status}, time.UnixMilli(1))
			require.True(t, first)
			require.Equal(t, foreground, got.Reported)
			require.Equal(t, foreground, got.Foreground)
		}
	}
}

func TestKeptOutcome(t *testing.T) {
	for _, status := range terminal() {
		o := registry.Outcome{Status: status, Detail: "detail", Output: "output"}
		require.Equal(t, o, o.Kept(nil))
	}
	for _, status := range append(living(), "", "done") {
		o := registry.Outcome{Status: status, Detail: "all well"}.Kept(nil)
		require.Equal(t, registry.StatusFailed, o.Status, "%q", status)
		require.NotEmpty(t, o.Detail)
		require.NotContains(t, o.Detail, "all well")
	}
	o := registry.Outcome{Status: registry.StatusCompleted}.Kept(errors.New("lost\n the\tchild"))
	require.Equal(t, registry.StatusFailed, o.Status)
	require.Contains(t, o.Detail, "lost the child")
}
