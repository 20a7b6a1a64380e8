package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asDoomed makes this program a host of the net that is named, which starts the command
// of asHost, tells what it would leave, and waits to be killed.
const asDoomed = "PROC_TEST_AS_DOOMED"

// left is what a doomed host tells of itself.
type left struct {
	Remains Remains
	Leader  Kin
}

func doomedMain(net, command string) {
	host, err := NewHost(Config{Net: net})
	if err != nil {
		return
	}
	p, err := host.Start(Spec{
		Path: bash(), Args: []string{"bash", "-c", command}, Env: os.Environ(),
		Files: []uintptr{host.Null(), 1, 1},
	})
	if err != nil {
		return
	}
	s, _ := statOf(p.Pid())
	if text, err := json.Marshal(left{host.Remains(), Kin{PID: p.Pid(), Start: s.start, Leader: true}}); err == nil {
		_, _ = os.Stdout.Write(append(text, '\n'))
		select {}
	}
}

// doom starts a host, has it start the command, waits for as many numbers as that
// prints, and kills the host.
func doom(t *testing.T, net, command string, pids int) (l left, died uint64, found []int) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asDoomed+"="+net, asHost+"="+command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() { _ = r.Close() })
	out := bufio.NewReader(r)
	for len(found) < pids || l.Leader.PID == 0 {
		text := line(t, out)
		if strings.HasPrefix(text, "{") {
			require.NoError(t, json.Unmarshal([]byte(text), &l))
			continue
		}
		var pid int
		_, err := fmt.Sscan(text, &pid)
		require.NoError(t, err, text)
		found = append(found, pid)
	}
	require.NoError(t, cmd.Process.Kill())
	died = Ticks()
	require.Error(t, cmd.Wait())
	return l, died, found
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestRemainsAreEnded(t *testing.T) {
	for _, net := range []string{netCgroup, netSubreaper, netGroup} {
		t.Run(net, func(t *testing.T) {
			if host, err := NewHost(Config{Net: net}); err != nil {
				t.Skip(err)
			} else {
				require.NoError(t, host.Close())
			}
			for _, c := range []struct {
				name, command string
				pids          int
			}{
				{"K1", `sleep 511 & echo $!; echo $$; sleep 512; echo x`, 2},
				{"deaf", `trap "" TERM INT HUP; (trap "" TERM; echo $BASHPID; while :; do sleep 0.513; done) & echo $$; while :; do sleep 0.514; done`, 2},
				{"own session", `setsid bash -c 'echo $$; exec sleep 515' & wait`, 1},
				{"orphan of its own session", `setsid -f bash -c 'echo $$; exec sleep 516'; exec sleep 517`, 1},
				{"silent orphan", `setsid -f bash -c 'echo $$; exec sleep 518 >/dev/null 2>&1'; exec sleep 519`, 1},
				{"naked orphan", `env -i setsid -f bash -c 'echo $$; exec sleep 523 >/dev/null 2>&1'; exec sleep 519`, 1},
				{"stopped", `sleep 520 & kill -STOP $!; echo $!; wait`, 1},
				{"storm of forks", `setsid bash -c 'echo $$; while :; do (sleep .01 &); done' & wait`, 1},
				{"behind a leader that is gone", `(sleep 521 & echo $!; setsid sleep 522 & echo $!); exit 0`, 2},
			} {
				t.Run(c.name, func(t *testing.T) {
					if c.name == "naked orphan" && net == netGroup {
						t.Skip("nothing tells of it")
					}
					t.Parallel()
					l, died, pids := doom(t, net, c.command, c.pids)
					ended, err := EndRemains(soon(t), l.Remains, []Kin{l.Leader}, died)
					require.NoError(t, err)
					if net != netCgroup { // there another host may have come first
						require.GreaterOrEqual(t, ended, c.pids)
					}
					for _, pid := range append(pids, l.Leader.PID) {
						require.False(t, alive(pid), "%d lives", pid)
					}
					if l.Remains.Group != "" {
						require.NoDirExists(t, l.Remains.Group)
					}
					again, err := EndRemains(soon(t), l.Remains, []Kin{l.Leader}, died)
					require.NoError(t, err)
					require.Zero(t, again)
				})
			}
		})
	}
}

// stranger is a process that no host knows, in a session of its own.
func stranger(t *testing.T, env ...string) Kin {
	t.Helper()
	cmd := exec.Command("sleep", "531")
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s, ok := statOf(cmd.Process.Pid)
	require.True(t, ok)
	return Kin{PID: s.pid, Start: s.start, Leader: true}
}

func TestRemainsLeaveOtherUsersAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root sees two users at once")
	}
	r := Remains{Boot: bootID(), Since: Ticks() - 10, User: 4243, Mark: string(newMark())}
	for user, ends := range map[uint32]bool{4242: false, 4243: true} {
		cmd := exec.Command("sleep", "532")
		cmd.Env = append(os.Environ(), remainsMark+r.Mark)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: user, Gid: user}}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		_, err := EndRemains(soon(t), r, nil, Ticks())
		require.NoError(t, err)
		require.Equal(t, !ends, alive(cmd.Process.Pid), "user %d", user)
	}
}

func TestRemainsLeaveStrangersAlone(t *testing.T) {
	self := Remains{Boot: bootID(), Since: Ticks(), User: uint32(os.Geteuid()), Mark: string(newMark())}
	self.Since -= 10
	for name, c := range map[string]struct {
		env    string
		change func(r *Remains, kin *Kin)
		ends   bool
	}{
		"the number was used again":    {"", func(_ *Remains, kin *Kin) { kin.Start-- }, false},
		"the list is right":            {"", func(*Remains, *Kin) {}, true},
		"another start of the machine": {"", func(r *Remains, _ *Kin) { r.Boot = "another" }, false},
		"started before the host":      {remainsMark + self.Mark, func(r *Remains, kin *Kin) { r.Since, kin.PID = Ticks()+100, 0 }, false},
		"the mark is of another host":  {remainsMark + "another", func(_ *Remains, kin *Kin) { kin.PID = 0 }, false},
		"the mark is right":            {remainsMark + self.Mark, func(_ *Remains, kin *Kin) { kin.PID = 0 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := self
			kin := stranger(t, c.env)
			pid := kin.PID
			require.Eventually(t, func() bool {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				return strings.HasPrefix(string(text), "sleep")
			}, 20*time.Second, time.Millisecond)
			c.change(&r, &kin)
			_, err := EndRemains(soon(t), r, []Kin{kin}, Ticks())
			require.NoError(t, err)
			require.Equal(t, !c.ends, alive(pid))
		})
	}
}

// A session's number proves nothing once its leader may have been another.
func TestRemainsOfASessionUsedAgain(t *testing.T) {
	self := Remains{Boot: bootID(), Since: Ticks() - 10, User: uint32(os.Geteuid())}
	for name, c := range map[string]struct {
		died func(leader uint64) uint64
		lead bool
		ends bool
	}{
		"its leader was there when the host died": {func(uint64) uint64 { return Ticks() }, true, true},
		"it may have been made later":             {func(leader uint64) uint64 { return leader - 10 }, true, false},
		"its leader was reaped before":            {func(uint64) uint64 { return Ticks() }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("bash", "-c", `sleep 533 & echo $!`)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			r, w, err := os.Pipe()
			require.NoError(t, err)
			cmd.Stdout = w
			require.NoError(t, cmd.Start())
			require.NoError(t, w.Close())
			pid := pidLine(t, bufio.NewReader(r))
			require.NoError(t, r.Close())
			s, ok := statOf(cmd.Process.Pid)
			require.True(t, ok)
			require.NoError(t, cmd.Wait())
			t.Cleanup(func() { endByPid(t, pid) })
			_, err = EndRemains(soon(t), self, []Kin{{PID: s.pid, Start: s.start, Leader: c.lead}}, c.died(s.start))
			require.NoError(t, err)
			require.Equal(t, !c.ends, alive(pid))
		})
	}
}

// A new host takes a second look at the groups of dead ones.
func TestStaleGroupsAreEnded(t *testing.T) {
	if host, err := NewHost(Config{Net: netCgroup}); err != nil {
		t.Skip(err)
	} else {
		require.NoError(t, host.Close())
	}
	l, _, pids := doom(t, netCgroup, `setsid -f bash -c 'echo $$; exec sleep 541' >/proc/$$/fd/1; echo $$; exec sleep 542`, 2)
	host := newHostWith(t, netCgroup)
	requireGone(t, pids...)
	requireRemoved(t, l.Remains.Group)
	live := host.Remains()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p, _ := start(t, host, "exec sleep 543")
	_, err := EndRemains(ctx, live, nil, Ticks())
	require.ErrorContains(t, err, "held by a live program")
	require.True(t, alive(p.Pid()))
	p.Stop(0)
	finish(t, p)
}
