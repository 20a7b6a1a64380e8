package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// swappable starts the daemon from a file that can be replaced.
func (r *rig) swappable() (replace func(text string)) {
	r.t.Helper()
	self, err := os.Executable()
	require.NoError(r.t, err)
	path := filepath.Join(r.t.TempDir(), "afoot")
	require.NoError(r.t, exec.Command("cp", self, path).Run())
	cmd := exec.Command(path, "serve")
	cmd.Env, cmd.Dir = r.env, r.home
	r.launch(cmd)
	r.t.Cleanup(r.stop)
	r.waitReady()
	return func(text string) {
		r.t.Helper()
		require.NoError(r.t, os.WriteFile(path+".new", []byte(text), 0o700))
		require.NoError(r.t, os.Rename(path+".new", path))
	}
}

// A binary that is gone between its check and the exec: all is taken back.
func TestReloadTakesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	replace := r.swappable()
	r.ok("run", "-d", "--", "sleep 2; echo later; exit 3")
	id := strings.TrimSpace(r.ok("run", "-d", "--", "echo up; sleep 384"))
	r.eventually("it is up", func() bool { return r.tasks()[1].OutputBytes > 0 })
	watchdog := r.watchdogs()
	for range 3 {
		replace("#!/bin/sh\nrm \"$0\"\n")
		_, stderr, code := r.afoot("reload")
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "can't be run, so the old one goes on")
		require.Equal(t, "x\n", r.ok("run", "--", "echo x"))
	}
	require.Equal(t, watchdog, r.watchdogs())
	r.eventually("its end is heard of", func() bool { return r.tasks()[0].Detail == "exit code: 3" })
	require.Equal(t, "later\n", r.ok("logs", "bash-1"))
	r.ok("kill", id)
	r.eventually("it is killed", func() bool { return r.tasks()[1].Status == "killed" })
}

// A binary that ends at once is a daemon that died.
func TestReloadToNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	replace := r.swappable()
	r.ok("run", "-d", "--", "echo up; sleep 385")
	pid := r.daemon.Process.Pid
	replace("#!/bin/sh\n[ \"$2\" = --check ]\n")
	_, stderr, code := r.afoot("reload")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "ended before it could answer")
	require.Error(t, r.ended(20*time.Second))
	r.eventually("its tasks are ended", func() bool {
		return exec.Command("pgrep", "-f", "^sleep 385$").Run() != nil
	})
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	r.serve()
	require.Equal(t, "failed", string(r.tasks()[0].Status))
}

// Two that ask at once are both answered, and the port stays open all the time.
func TestReloadTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	info, err := readListenInfo(r.state)
	require.NoError(t, err)
	over := make(chan struct{})
	wrong := make(chan error, 1)
	go func() {
		defer close(wrong)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for {
			select {
			case <-over:
				return
			default:
			}
			res, err := client.Get(info.URL + "/healthz")
			if err != nil {
				wrong <- err
				return
			}
			_ = res.Body.Close()
		}
	}()
	for range 3 {
		one, two := r.command("reload"), r.command("reload")
		require.NoError(t, one.Start())
		require.NoError(t, two.Start())
		require.NoError(t, one.Wait())
		require.NoError(t, two.Wait())
	}
	close(over)
	require.NoError(t, <-wrong)
	require.Len(t, r.watchdogs(), 1)
}

func TestLuggageIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "x", "1", "77"} {
		r := newRig(t, luggageVariable+"="+value)
		_, stderr, code := r.afoot("ls")
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "can't be taken over")
	}
}
