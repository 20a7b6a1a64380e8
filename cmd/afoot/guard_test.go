package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// watchdogs lists the watchdogs of the daemon, by number.
func (r *rig) watchdogs() (pids []int) {
	r.t.Helper()
	daemon := r.daemon.Process.Pid
	entries, err := os.ReadDir("/proc")
	require.NoError(r.t, err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || parentOf(pid) != daemon {
			continue
		}
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Equal(line, []byte("afoot\x00watchdog\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func parentOf(pid int) int {
	fields := statFields(pid)
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return -1
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// statFields gives /proc/PID/stat from the state on; nil if there is none.
func statFields(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// alive lists who of the marked commands, such as sleeps of a number of their own, lives.
func alive(t *testing.T, words ...string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || parentOf(pid) < 0 {
			continue
		}
		line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		for field := range strings.SplitSeq(string(line), "\x00") {
			for _, word := range words {
				if field == word {
					found = append(found, entry.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
				}
			}
		}
	}
	return found
}

// netsHere are those that work on this machine.
func netsHere(t *testing.T) []string {
	t.Helper()
	r := newRig(t, "AFOOT_NET=cgroup")
	if _, stderr, _ := r.finish(func() *exec.Cmd {
		cmd := r.command("serve")
		cmd.Env = append(cmd.Env, "AFOOT_ADDR=unix:"+filepath.Join(r.home, "no", "such", "directory"))
		return cmd
	}()); strings.Contains(stderr, "does not work here") {
		return []string{"subreaper", "group"}
	}
	return []string{"cgroup", "subreaper", "group"}
}

// K1 without its second start: nobody is left after a sudden death. Within which time is
// for the tests of the whole to say: here others run beside it.
func TestK1SuddenDeathEndsAllTasks(t *testing.T) {
	t.Parallel()
	for i, net := range netsHere(t) {
		t.Run(net, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "AFOOT_NET="+net)
			r.serve()
			tag := fmt.Sprintf("3%d", 18+i)
			tags := []string{tag + ".1", tag + ".2", tag + ".3", tag + ".4", tag + ".5", tag + ".6"}
			r.ok("run", "-d", "--", fmt.Sprintf(`sleep %s.1 & sleep %s.2; echo x`, tag, tag))
			r.ok("run", "-d", "--", fmt.Sprintf(`trap "" TERM HUP INT; setsid sleep %s.3 & while :; do sleep %s.4; done`, tag, tag))
			r.ok("run", "--", fmt.Sprintf(`setsid -f sleep %s.5 >/dev/null 2>&1; sleep %s.6 >/dev/null 2>&1 &`, tag, tag))
			r.eventually("all are up", func() bool { return len(alive(t, tags...)) == 6 })
			dogs := r.watchdogs()
			require.Len(t, dogs, 1)
			require.NoError(t, r.daemon.Process.Kill())
			require.Error(t, r.ended(r.soon()))
			r.eventually("nobody is left", func() bool { return len(alive(t, tags...)) == 0 })
			r.eventually("the watchdog is done", func() bool { return parentOf(dogs[0]) < 0 })
		})
	}
}

func TestWatchdogIsKeptApart(t *testing.T) {
	t.Parallel()
	r := newRig(t, "SECRET_OF_OURS=x")
	r.serve()
	require.Len(t, r.watchdogs(), 1)
	dog := r.watchdogs()[0]
	r.eventually("it is on guard", func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", dog))
		return string(name) == "afoot-watchdog\n"
	})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, syscall.Kill(dog, sig))
	}
	proc := func(name string) string { return fmt.Sprintf("/proc/%d/%s", dog, name) }
	session, err := unix.Getsid(dog)
	require.NoError(t, err)
	require.Equal(t, dog, session)
	cwd, err := os.Readlink(proc("cwd"))
	require.NoError(t, err)
	require.Equal(t, "/", cwd)
	environ, err := os.ReadFile(proc("environ"))
	require.NoError(t, err)
	require.NotContains(t, string(environ), "SECRET_OF_OURS")
	require.NotContains(t, string(environ), "AFOOT_")
	group, err := os.ReadFile(proc("cgroup"))
	require.NoError(t, err)
	require.NotContains(t, string(group), "/afoot-", "it is no task's")
	r.eventually("it holds the pipe, the list and nothing else of the daemon's", func() bool {
		entries, err := os.ReadDir(proc("fd"))
		require.NoError(t, err)
		held := map[string]string{}
		for _, entry := range entries {
			link, _ := os.Readlink(proc("fd/" + entry.Name()))
			if !strings.HasPrefix(link, "anon_inode:") && !strings.HasPrefix(link, "/sys/fs/cgroup/") { // the runtime's own
				held[entry.Name()] = link
			}
		}
		return held["0"] == os.DevNull && held["1"] == os.DevNull && held["2"] == os.DevNull &&
			strings.HasPrefix(held["3"], "pipe:") && strings.Contains(held["4"], "roll") && len(held) == 5
	})
	require.Equal(t, "x\n", r.ok("run", "--", "echo x"))
	require.Equal(t, []int{dog}, r.watchdogs(), "it is the same one")
	r.stop()
	require.Negative(t, parentOf(dog))
	require.NoFileExists(t, filepath.Join(r.state, remainsName))
}

// One that dies is replaced, and the new one knows what the old one knew.
func TestWatchdogThatDies(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_NET=subreaper")
	r.serve()
	r.ok("run", "-d", "--", "setsid sleep 331.1 & sleep 331.2")
	r.eventually("it is up", func() bool { return len(alive(t, "331.1", "331.2")) == 2 })
	dog := r.watchdogs()[0]
	require.NoError(t, syscall.Kill(dog, syscall.SIGKILL))
	r.eventually("there is another", func() bool { dogs := r.watchdogs(); return len(dogs) == 1 && dogs[0] != dog })
	require.Len(t, alive(t, "331.1", "331.2"), 2)
	r.eventually("it says so", func() bool { return strings.Contains(r.out.String(), "watchdog ended") })
	require.NoError(t, r.daemon.Process.Kill())
	require.Error(t, r.ended(r.soon()))
	r.eventually("nobody is left", func() bool { return len(alive(t, "331.1", "331.2")) == 0 })
}

// A daemon whose watchdog died with it is cleaned up after by the next one.
func TestSecondLook(t *testing.T) {
	t.Parallel()
	for i, net := range netsHere(t) {
		t.Run(net, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "AFOOT_NET="+net)
			r.serve()
			tag := fmt.Sprintf("34%d.", i)
			r.ok("run", "-d", "--", fmt.Sprintf(`setsid -f sleep %s1 >/dev/null 2>&1; sleep %s2`, tag, tag))
			r.eventually("it is up", func() bool { return len(alive(t, tag+"1", tag+"2")) == 2 })
			dog := r.watchdogs()[0]
			require.NoError(t, syscall.Kill(dog, syscall.SIGSTOP))
			r.eventually("the watchdog has stopped", func() bool { return stopped(dog) })
			require.NoError(t, r.daemon.Process.Kill())
			require.NoError(t, syscall.Kill(dog, syscall.SIGKILL))
			require.Error(t, r.ended(r.soon()))
			if net != "cgroup" { // else any daemon that starts meanwhile has taken the look
				require.Len(t, alive(t, tag+"1", tag+"2"), 2)
			}
			require.FileExists(t, filepath.Join(r.state, remainsName))
			r.serve()
			require.Empty(t, alive(t, tag+"1", tag+"2"))
		})
	}
}

// A new daemon may start at once: the watchdog holds nothing that it needs.
func TestStartAtOnceAfterASuddenDeath(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 3 {
		r.serve()
		r.ok("run", "-d", "--", "trap '' TERM; sleep 351")
		require.NoError(t, r.daemon.Process.Kill())
		require.Error(t, r.ended(r.soon()))
	}
	r.serve()
	require.Equal(t, "x\n", r.ok("run", "--", "echo x"))
	r.eventually("nobody is left", func() bool { return len(alive(t, "351")) == 0 })
}

func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") T ")
}
