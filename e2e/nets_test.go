package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nets are those by which a daemon can own a tree. The wide ones also know who makes
// a session of its own.
var (
	nets     = []string{"cgroup", "subreaper", "group"}
	wideNets = nets[:2]
)

// inNet begins a test that runs beside those of the other nets, and gives the
// daemon's environment for its own.
func inNet(t *testing.T, name string) string {
	t.Helper()
	t.Parallel()
	if name == "cgroup" {
		needCgroup(t)
	}
	return "AFOOT_NET=" + name
}

// netName is the name in what [inNet] gave.
func netName(net string) string { return strings.TrimPrefix(net, "AFOOT_NET=") }

// needCgroup skips the test, with the reason, where no group with a kill file can be
// made below this process's own.
func needCgroup(t *testing.T) {
	t.Helper()
	if why := noCgroup(t); why != "" {
		t.Skip(why)
	}
}

// noCgroup says why no such group can be made; "" if one can.
func noCgroup(t *testing.T) string {
	t.Helper()
	own, err := cgroupOf(os.Getpid())
	if err != nil {
		return fmt.Sprintf("no cgroup v2: %v", err)
	}
	dir := filepath.Join(own, "afoot-e2e-"+hexText(6))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Sprintf("no cgroup can be made: %v", err)
	}
	_, err = os.Stat(filepath.Join(dir, "cgroup.kill"))
	require.NoError(t, os.Remove(dir))
	if err != nil {
		return fmt.Sprintf("cgroups of this kernel can't be killed: %v", err)
	}
	return ""
}

// availableNets gives those that can be had here.
func availableNets(t *testing.T) []string {
	t.Helper()
	if noCgroup(t) != "" {
		return nets[1:]
	}
	return nets
}

// cgroupOf gives the directory of a process's group in the unified hierarchy.
func cgroupOf(pid int) (string, error) {
	root, err := cgroupRoot()
	if err != nil {
		return "", err
	}
	path, err := cgroupPath(pid)
	return filepath.Join(root, path), err
}

// cgroupRoot gives where the unified hierarchy is mounted.
func cgroupRoot() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 2 && words[2] == "cgroup2" {
			return words[1], nil
		}
	}
	return "", errors.New("no unified hierarchy is mounted")
}

// cgroupPath gives the path of a process's group below the root.
func cgroupPath(pid int) (string, error) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", fmt.Errorf("process %d has no place in the unified hierarchy", pid)
}

// groupsBelow counts the directories under a control group.
func groupsBelow(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && path != dir {
			n++
		}
		return nil // one that goes meanwhile is none
	})
	return n
}

var nextOdd atomic.Int64

// odd gives a time in seconds that no other sleep of this machine has, so that the
// sleep is found whatever was done to its environment. One that is left is ended
// with the test.
func odd(t *testing.T) string {
	t.Helper()
	length := fmt.Sprintf("%d.%d", 1000+nextOdd.Add(1), os.Getpid())
	t.Cleanup(func() {
		for _, pid := range asleep(length) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return length
}

// asleep gives the live sleeps of that length.
func asleep(length string) []int { return running("sleep", length) }

// running gives the live processes with these arguments, exactly.
func running(argv ...string) []int {
	want := strings.Join(argv, "\x00") + "\x00"
	var found []int
	for _, pid := range everybody() {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && string(line) == want && living(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// saying gives the live processes with a text somewhere in their arguments.
func saying(text string) []int {
	var found []int
	for _, pid := range everybody() {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(line), text) && living(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func everybody() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// net gives what /version says.
func (d *daemon) net(t *testing.T) string {
	t.Helper()
	a := d.as("net").do(t, http.MethodGet, "/version", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	var version struct {
		Net string `json:"net"`
	}
	a.into(t, &version)
	return version.Net
}

func TestNetIsTold(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			require.Equal(t, netName(net), d.net(t))
			require.Contains(t, d.logTail(20000), netName(net), "which net is in use is logged at the start")
		})
	}
}

func TestNetIsTheBest(t *testing.T) {
	t.Parallel()
	for _, d := range []*daemon{serve(t), serve(t, "AFOOT_NET=auto")} {
		best := d.net(t)
		require.Contains(t, []string{"cgroup", "subreaper"}, best)
		if best != "cgroup" {
			needCgroup(t)
			require.Equal(t, "cgroup", best, "the machine can have it")
		}
	}
}

func TestNetThatIsNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cgroups", "none", "CGROUP ", "0"} {
		prepare(t, "AFOOT_NET="+name).refuses("AFOOT_NET")
	}
}

// In a container the hierarchy is often there, but not to be written to.
func TestNetWithoutCgroups(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can hide the hierarchy")
	}
	for name, hide := range map[string]string{
		"hidden":    `mount -t tmpfs none /sys/fs/cgroup`,
		"read-only": `for m in $(awk '$3=="cgroup2"{print $2}' /proc/self/mounts); do mount -o remount,bind,ro "$m"; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := prepare(t)
			d.argv = []string{"unshare", "-m", "bash", "-c", hide + ` && exec "$0" serve`, binary}
			d.launch()
			d.ready()
			require.Equal(t, "subreaper", d.net(t))
			c := d.as("net")
			length := odd(t)
			id := c.start(t, `env -i setsid -f sleep `+length+`; echo up`).ID
			s, text := c.finish(t, id)
			require.Equal(t, "up\n", text)
			require.Equal(t, "exit code: 0; 1 process left running", s.Detail)
			require.Len(t, asleep(length), 1)
			d.stop()
			require.Empty(t, asleep(length))
		})
	}
}
