package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bystander starts a sleep that is nobody's, and ends it with the test.
func bystander(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", odd(t))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// K1: a daemon that dies takes everything with it that it started, whether or not
// another one comes, and the next one tells the truth.
func TestK1DaemonDies(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT} {
			for _, when := range []string{"later", "at once"} {
				t.Run(fmt.Sprint(name, " ", signal, " ", when), func(t *testing.T) {
					net := inNet(t, name)
					d := serve(t, net)
					d.dies(t, signal, when == "at once", netName(net))
				})
			}
		}
	}
}

func (d *daemon) dies(t *testing.T, signal syscall.Signal, atOnce bool, net string) {
	t.Helper()
	c := d.as("k1")
	length := odd(t)
	ended := c.start(t, `echo ended; exit 7`).ID
	before, _ := c.finish(t, ended)
	reported := c.collected(t, `echo collected`)
	live := map[string]string{
		"tree":   `sleep ` + length + ` & echo one; echo -n two; sleep ` + length + `; echo x`,
		"deaf":   `trap "" TERM HUP INT; echo one; echo -n two; sleep ` + length + `; sleep ` + length,
		"nested": `bash -c 'sleep ` + length + ` & sleep ` + length + `' | cat & echo one; echo -n two; wait`,
	}
	if net != "group" {
		live["sessions"] = `setsid sleep ` + length + ` & setsid bash -c 'trap "" TERM; sleep ` + length + `; true' & echo one; echo -n two; wait`
	}
	if net == "cgroup" {
		live["naked"] = `env -i setsid -f setsid -f sleep ` + length + `; echo one; echo -n two; sleep ` + length
	}
	running := map[string]string{}
	for name, command := range live {
		running[name] = c.start(t, command, fields{"label": name}).ID
		c.says(t, running[name], "two")
	}
	left := c.start(t, `sleep `+length+` >/dev/null 2>&1 & echo left`).ID
	leftBehind := c.over(t, left)
	stranger := bystander(t)
	watchdogs := d.watchdogs()
	require.Len(t, watchdogs, 1)

	require.NoError(t, d.cmd.Process.Signal(signal))
	require.True(t, d.waitExit(10*time.Second))
	died := time.Now()
	if atOnce {
		d.launch()
	}
	eventually(t, time.Until(died.Add(orphaned)), "nobody is left", func() bool {
		if d.running() {
			return len(asleep(length)) == 0 && !living(watchdogs[0])
		}
		return len(d.alive()) == 0 && len(asleep(length)) == 0 && !living(watchdogs[0])
	})
	require.True(t, living(stranger.Process.Pid), "a foreign process was ended")
	if !atOnce {
		d.launch()
	}
	d.ready()

	var want []string
	for name, id := range running {
		s := c.get(t, id)
		wasLost(t, s)
		require.False(t, s.Reported)
		o := c.read(t, id, "offset=0")
		require.Equal(t, "one\ntwo", o.Text, name)
		require.True(t, o.EOF)
		want = append(want, id)
	}
	require.True(t, before.same(c.get(t, ended)))
	require.True(t, leftBehind.same(c.get(t, left)))
	require.True(t, c.get(t, reported).Reported)
	require.Len(t, c.list(t, ""), len(running)+3)
	told := c.subscribe(t, "", "")
	require.ElementsMatch(t, append(want, ended, left), ids(t, told.done(t, len(want)+2)))
	require.Empty(t, told.all("gap"))
	next := c.start(t, "true").ID
	require.Equal(t, fmt.Sprintf("bash-%d", len(running)+4), next)
	require.True(t, living(stranger.Process.Pid))
}

// A number of the daemon's that has a new owner when somebody comes to look is left
// alone: by the watchdog, and by the next daemon.
func TestK1NumberUsedAgain(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		for _, who := range []string{"watchdog", "next daemon"} {
			t.Run(name+" "+who, func(t *testing.T) {
				net := inNet(t, name)
				d := serve(t, net)
				c := d.as("k1")
				mine := odd(t)
				id := c.start(t, `exec sleep `+mine).ID
				other := c.start(t, `sleep `+mine+`; true`).ID
				eventually(t, 10*time.Second, "both sleep", func() bool { return len(asleep(mine)) == 2 })
				number := c.d.aliveOf(id)[0].pid
				require.NotEmpty(t, d.aliveOf(other))
				watchdog := d.watchdogs()[0]
				require.NoError(t, syscall.Kill(watchdog, syscall.SIGSTOP))
				defer func() { _ = syscall.Kill(watchdog, syscall.SIGCONT) }()
				eventually(t, 10*time.Second, "the watchdog has stopped", func() bool { return state(watchdog) == 'T' })
				d.die(t)
				require.NoError(t, syscall.Kill(number, syscall.SIGKILL))
				eventually(t, 10*time.Second, "its number is free", func() bool { return syscall.Kill(number, 0) == syscall.ESRCH })
				stranger := withNumber(t, number)
				if who == "watchdog" {
					require.NoError(t, syscall.Kill(watchdog, syscall.SIGCONT))
				} else {
					require.NoError(t, syscall.Kill(watchdog, syscall.SIGKILL))
				}
				d.launch()
				d.ready()
				eventually(t, 10*time.Second, "the others have ended, and so has the watchdog", func() bool {
					return len(asleep(mine)) == 0 && !living(watchdog)
				})
				wasLost(t, c.get(t, id))
				wasLost(t, c.get(t, other))
				require.True(t, living(stranger.Process.Pid), "a foreign process was ended")
			})
		}
	}
}

// withNumber starts a bystander that has a number of its own choice.
func withNumber(t *testing.T, number int) *exec.Cmd {
	t.Helper()
	for range 500 {
		err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(number-1)), 0)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS) {
			t.Skipf("numbers can't be chosen here: %v", err)
		}
		require.NoError(t, err)
		cmd := exec.Command("sleep", odd(t))
		require.NoError(t, cmd.Start())
		if cmd.Process.Pid == number {
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			return cmd
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		if syscall.Kill(number, 0) == nil {
			t.Skip("somebody else was faster")
		}
	}
	t.Skip("the number was not to be had")
	return nil
}

// A watchdog that can't do its work is no reason for anybody to be left: the next
// daemon takes a second look.
func TestK1WithoutWatchdog(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("k1")
			length := odd(t)
			id := c.start(t, `sleep `+length+` & trap "" TERM; echo up; sleep `+length+`; true`).ID
			c.says(t, id, "up")
			eventually(t, 10*time.Second, "both sleep", func() bool { return len(asleep(length)) == 2 })
			watchdog := d.watchdogs()[0]
			require.NoError(t, syscall.Kill(watchdog, syscall.SIGSTOP))
			eventually(t, 10*time.Second, "the watchdog has stopped", func() bool { return state(watchdog) == 'T' })
			d.die(t)
			require.NoError(t, syscall.Kill(watchdog, syscall.SIGKILL))
			if name != "cgroup" { // else any daemon that starts meanwhile has taken the look
				require.Len(t, asleep(length), 2)
			}
			d.again()
			eventually(t, orphaned, "nobody is left", func() bool { return len(asleep(length)) == 0 })
			wasLost(t, c.get(t, id))
		})
	}
}

// A watchdog that ends is replaced, and the next one knows all.
func TestK1WatchdogDies(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_NET=subreaper")
	c := d.as("k1")
	length := odd(t)
	id := c.start(t, `sleep `+length+` & echo up; sleep `+length+`; true`).ID
	c.says(t, id, "up")
	first := d.watchdogs()[0]
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, 10*time.Second, "there is another", func() bool {
		all := d.watchdogs()
		return len(all) == 1 && all[0] != first
	})
	require.Equal(t, "running", c.get(t, id).Status)
	d.die(t)
	eventually(t, orphaned, "nobody is left", func() bool { return len(asleep(length)) == 0 && len(d.alive()) == 0 })
	d.again()
	wasLost(t, c.get(t, id))
}

// The end of a daemon that is only starting leaves nobody, and what was told before
// stays true.
func TestK1DiesWhileItStarts(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("k1")
	length := odd(t)
	live := c.start(t, `echo up; sleep `+length).ID
	c.says(t, live, "up")
	ended, _ := c.finish(t, c.start(t, `echo done; exit 5`).ID)
	d.die(t)
	for i := range 12 {
		d.launch()
		timer := time.NewTimer(time.Duration(i) * 25 * time.Millisecond)
		select {
		case <-timer.C:
		case <-d.exited:
			require.FailNow(t, "it does not start", d.logTail(4000))
		}
		d.die(t)
	}
	d.again()
	require.Empty(t, asleep(length))
	wasLost(t, c.get(t, live))
	require.True(t, ended.same(c.get(t, ended.ID)))
	require.ElementsMatch(t, []string{live, ended.ID}, ids(t, c.subscribe(t, "", "").done(t, 2)))
	require.Equal(t, "bash-3", c.start(t, "true").ID)
	require.Equal(t, http.StatusOK, c.do(t, http.MethodGet, "/readyz", nil).status)
}
