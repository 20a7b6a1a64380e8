package bash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"afoot/producers/output"
	"afoot/registry"
)

// TestK5OutOfDescriptors lowers the limit step by step, so that each thing that
// needs a descriptor is refused once.
func TestK5OutOfDescriptors(t *testing.T) {
	stand := newStand(t)
	stand.run("true").end()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }()
	before := descriptors(t)
	refused, started := 0, 0
	for step := range 48 {
		// A plain one, then one of all pipes that there can be.
		spare, wanted := step, fields{"command": "exit 4"}
		if step >= 16 {
			spare, wanted = step-16, fields{"command": "exit 4; : " + strings.Repeat("x", maxStringBytes), "stdin": "open", "streams": "split"}
		}
		limit := unix.Rlimit{Cur: uint64(lowestFree(t) + spare), Max: old.Max}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		plan, err := stand.prepare(wanted)
		require.NoError(t, err)
		ends := make(chan registry.Outcome, 1)
		run, err := plan.Start(context.Background(), registry.Launch{ID: "bash-1", Settle: func(o registry.Outcome, broken error) {
			require.NoError(t, broken)
			ends <- o
		}})
		if err == nil {
			started++
			require.Equal(t, "exit code: 4", (<-ends).Detail)
			require.NoError(t, run.Discard())
		} else {
			refused++
			require.Equal(t, registry.CodeUnavailable, registry.CodeOf(err))
			require.ErrorContains(t, err, "too many open files")
			t.Logf("with %d free: %v", spare, err)
		}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
		require.LessOrEqual(t, descriptors(t), before+5)
	}
	require.Positive(t, refused)
	require.Positive(t, started)
}

// lowestFree gives the number that the next descriptor will have.
func lowestFree(t *testing.T) int {
	t.Helper()
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	return int(file.Fd())
}

// onSmallDisk makes a stand whose output has a file system of its own.
func onSmallDisk(t *testing.T, size int) (*stand, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("no small file system to be had: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return newStand(t, func(c *Config) {
		store, err := output.NewStore(output.Config{Dir: dir})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		c.Store = store
	}), dir
}

func TestK6AFullDiskEndsNoWork(t *testing.T) {
	stand, dir := onSmallDisk(t, 2<<20)
	task := stand.run("head -c 5000000 /dev/zero; echo rc=$?")
	o := task.end()
	require.Equal(t, "exit code: 0; output was lost: no space left on device", o.Detail)
	written, dropped := task.Size()
	require.EqualValues(t, 5_000_005, written)
	require.Positive(t, dropped)
	page, err := task.Page(written-5, 10)
	require.NoError(t, err)
	require.Equal(t, "rc=0\n", page.Text)

	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 4<<20), 0o600) // as much as fits
	plan, err := stand.prepare(fields{"command": "echo hi"})
	require.NoError(t, err)
	_, err = plan.Start(context.Background(), registry.Launch{ID: "bash-2"})
	require.Equal(t, registry.CodeInsufficientStorage, registry.CodeOf(err))
	require.ErrorContains(t, err, "no space left on device")

	require.NoError(t, os.Remove(ballast))
	task = stand.run("echo again")
	require.Equal(t, "exit code: 0", task.end().Detail)
	require.Equal(t, "again\n", task.output())
}

func TestK6LossOfEitherStreamIsTold(t *testing.T) {
	stand, dir := onSmallDisk(t, 2<<20)
	task := stand.start(fields{"command": "echo a; head -c 5000000 /dev/zero >&2; exit 3", "streams": "split"})
	require.Equal(t, "exit code: 3; stderr was lost: no space left on device", task.end().Detail)
	written, dropped := task.Stderr().Size()
	require.EqualValues(t, 5_000_000, written)
	require.Positive(t, dropped)
	require.NoError(t, task.Discard())
	task = stand.start(fields{"command": "head -c 5000000 /dev/zero; echo a >&2; exit 3", "streams": "split"})
	require.Equal(t, "exit code: 3; output was lost: no space left on device", task.end().Detail)
	require.NoError(t, task.Discard())

	// Nothing stays of a start that gets one log and not the other.
	before, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 4<<20), 0o600)
	for range 20 {
		plan, err := stand.prepare(fields{"command": "true", "streams": "split"})
		require.NoError(t, err)
		_, err = plan.Start(t.Context(), registry.Launch{ID: "bash-2"})
		require.Equal(t, registry.CodeInsufficientStorage, registry.CodeOf(err))
	}
	require.NoError(t, os.Remove(ballast))
	after, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	const ahead = 5 // files made ahead
	require.LessOrEqual(t, len(after), len(before)+ahead)
}

func TestAStoredRequestThatDoesNotFitStartsNothing(t *testing.T) {
	stand, dir := onSmallDisk(t, 1<<20)
	stand.run("true").end()
	_ = os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 1<<20-64<<10), 0o600)
	mark := filepath.Join(t.TempDir(), "mark")
	plan, err := stand.prepare(fields{"command": "touch " + mark + "; : " + strings.Repeat("x", 100_000)})
	require.NoError(t, err)
	_, err = plan.Start(context.Background(), registry.Launch{ID: "bash-1"})
	require.Equal(t, registry.CodeInsufficientStorage, registry.CodeOf(err))
	require.NoFileExists(t, mark)
	leftovers, err := filepath.Glob(filepath.Join(dir, "*.aside"))
	require.NoError(t, err)
	require.Empty(t, leftovers)
}

func TestAShellThatVanishedIsBlamed(t *testing.T) {
	shell := filepath.Join(t.TempDir(), "shell")
	require.NoError(t, os.Symlink("/bin/bash", shell))
	stand := newStand(t, func(c *Config) { c.Shell = shell })
	stand.run("true").end()
	require.NoError(t, os.Remove(shell))
	plan, err := stand.prepare(fields{"command": "true"})
	require.NoError(t, err)
	_, err = plan.Start(context.Background(), registry.Launch{ID: "bash-1"})
	require.Equal(t, registry.CodeUnavailable, registry.CodeOf(err))
	require.ErrorContains(t, err, shell+" can't be run: no such file")
}

func TestVanishedOutputIsTold(t *testing.T) {
	stand, dir := onSmallDisk(t, 1<<20)
	task := stand.run("echo hi")
	task.end()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	for _, log := range logs {
		require.NoError(t, os.Remove(log))
	}
	page, err := task.Page(0, 10)
	require.NoError(t, err)
	require.Equal(t, registry.Page{Offset: 3, NextOffset: 3, Dropped: 3, End: true}, page)
	raw, err := task.Open()
	require.NoError(t, err)
	first, next, _ := raw.Bounds()
	require.Equal(t, []int64{3, 3}, []int64{first, next})
	require.NoError(t, raw.Close())
	_, err = task.Page(4, 10)
	require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
	require.NoError(t, task.Discard())
}

// TestManyAtOnce starts, reads and stops in parallel: every command ends once,
// with its own facts.
func TestManyAtOnce(t *testing.T) {
	stand := newStand(t)
	done := make(chan struct{})
	for i := range 60 {
		go func() {
			defer func() { done <- struct{}{} }()
			switch i % 4 {
			case 0:
				task := stand.run(fmt.Sprintf("seq 1 2000; exit %d", i))
				if got := task.end().Detail; got != fmt.Sprintf("exit code: %d", i) {
					t.Errorf("task %d ended with %q", i, got)
				}
				if size, _ := task.Size(); size != 8893 {
					t.Errorf("task %d has %d bytes", i, size)
				}
			case 1:
				task := stand.run("sleep 611 & sleep 611 & wait")
				_ = task.Cancel("")
				if got := task.end().Status; got != registry.StatusKilled {
					t.Errorf("task %d is %s", i, got)
				}
			case 2:
				task := stand.start(fields{"command": "trap '' TERM; while :; do sleep .612; done", "timeoutMs": 30})
				if got := task.end().Detail; got != "timed out after 30ms" {
					t.Errorf("task %d ended with %q", i, got)
				}
			default:
				task := stand.run("sleep 613 >/dev/null 2>&1 & exit 5")
				if got := task.end().Detail; got != "exit code: 5; 1 process left running" {
					t.Errorf("task %d ended with %q", i, got)
				}
				if err := task.Discard(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for range 60 {
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("a task does not end")
		}
	}
}
