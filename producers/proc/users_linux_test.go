package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const nobody = 65534

// asNobody runs tests of this program as a user without rights, in a control group if
// there is one.
func asNobody(t *testing.T, group *os.File, tests string, env ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	self, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer func() { _ = self.Close() }()
	// By descriptor: the way to the file may not be open to everybody.
	cmd := exec.Command("/proc/self/fd/3", "-test.run", tests, "-test.v")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Dir, cmd.Env = "/", append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if group != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// Without rights the nets catch the same.
func TestNetsWithoutRoot(t *testing.T) {
	out := asNobody(t, nil, "^(TestNetsStopEverybody|TestNetsNameLeftovers|TestNetsReapOrphansOnly|TestNotDumpable)$")
	require.Contains(t, out, "--- PASS: TestNetsStopEverybody/subreaper")
	require.Contains(t, out, "--- PASS: TestNotDumpable")
}

// In a group that was delegated to it, a program without rights has groups too.
func TestNetsDelegated(t *testing.T) {
	host, err := NewHost(Config{Net: netCgroup})
	if err != nil {
		t.Skip(err)
	}
	home := host.nets.cgroups.home.dir
	require.NoError(t, host.Close())
	group := delegated(t, home)
	out := asNobody(t, group, "^(TestNetsStopEverybody|TestNetsNameLeftovers)$")
	require.Contains(t, out, "--- PASS: TestNetsStopEverybody/cgroup")
}

// delegated makes a group that belongs to nobody.
func delegated(t *testing.T, home string) *os.File {
	t.Helper()
	dir := filepath.Join(home, fmt.Sprintf("delegated-%d", os.Getpid()))
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, removeGroup(dir)) })
	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		require.NoError(t, os.Chown(filepath.Join(dir, name), nobody, nobody))
	}
	group, err := os.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, group.Close()) })
	return group
}

// A task of the same user can't read the memory and environment of a program that is
// not root; the task itself is as other processes are.
func TestNotDumpable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	host := newHost(t)
	p, out := start(t, host, `cat /proc/$PPID/environ >/dev/null 2>&1; echo $?; cat /proc/$$/environ >/dev/null; echo $?`)
	require.Equal(t, "1", line(t, out))
	require.Equal(t, "0", line(t, out))
	finish(t, p)
}

func TestRunAs(t *testing.T) {
	if os.Geteuid() != 0 {
		_, err := NewHost(Config{RunAs: &User{UID: nobody, GID: nobody}})
		require.ErrorContains(t, err, "root")
		t.Skip("only root can be somebody else")
	}
	for _, net := range []string{netAuto, netSubreaper, netGroup} {
		host, err := NewHost(Config{Net: net, RunAs: &User{UID: nobody, GID: nobody}})
		require.NoError(t, err)
		p, out := start(t, host, `cd /; grep -E '^(Uid|Gid|Groups|CapEff|CapPrm)' /proc/self/status; setsid sleep 481 & echo $!; wait`)
		require.Equal(t, "Uid: 65534 65534 65534 65534", strings.Join(strings.Fields(line(t, out)), " "))
		require.Equal(t, "Gid: 65534 65534 65534 65534", strings.Join(strings.Fields(line(t, out)), " "))
		require.Equal(t, "Groups:", strings.TrimSpace(line(t, out)))
		for range 2 {
			require.Contains(t, line(t, out), strings.Repeat("0", 16))
		}
		pid := pidLine(t, out)
		p.Stop(0)
		finish(t, p)
		if net == netGroup {
			endByPid(t, pid)
		}
		require.False(t, alive(pid), net)
		require.NoError(t, host.Close())
	}
}

// asLimited makes this program say which controllers it could hand down.
const asLimited = "PROC_TEST_CONTROLLER"

// TestControllersAreHandedDown has a program alone in its group, which goes into a leaf
// for that; one that is not alone says so.
func TestControllersAreHandedDown(t *testing.T) {
	if name := os.Getenv(asLimited); name != "" {
		host, err := NewHost(Config{Net: netCgroup})
		require.NoError(t, err)
		helper := exec.Command("sleep", "483")
		require.NoError(t, helper.Start())
		where := func() string {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", helper.Process.Pid))
			require.NoError(t, err)
			return string(text)
		}
		before := where()
		err = host.nets.cgroups.enableOne(name)
		_, _ = fmt.Fprintf(os.Stdout, "answer: %v\n", err)
		require.Equal(t, err == nil, strings.Contains(where(), "/"+leaf+"\n"), "helpers come along")
		p, out := start(t, host, `cat /proc/self/cgroup | grep -c '^0::.*/afoot-.*/t'`)
		require.Equal(t, "1", line(t, out))
		finish(t, p)
		base := host.nets.cgroups.dir()
		require.NoError(t, host.Close())
		require.Equal(t, before, where(), "and back")
		require.NoDirExists(t, base)
		require.NoError(t, helper.Process.Kill())
		_ = helper.Wait()
		return
	}
	host, err := NewHost(Config{Net: netCgroup})
	if err != nil || os.Geteuid() != 0 {
		t.Skip(err)
	}
	home := host.nets.cgroups.home.dir
	require.NoError(t, host.Close())
	all, err := os.ReadFile(filepath.Join(home, "cgroup.controllers"))
	require.NoError(t, err)
	names := strings.Fields(string(all))
	if len(names) == 0 {
		t.Skip("no controllers at all")
	}
	name := names[0]
	if !listed(home, "cgroup.subtree_control", name) {
		require.NoError(t, control(home, "+"+name))
		t.Cleanup(func() { require.NoError(t, control(home, "-"+name)) })
	}
	group := delegated(t, home)
	run := func() string {
		return asNobody(t, group, "^TestControllersAreHandedDown$", asLimited+"="+name)
	}
	require.Contains(t, run(), "answer: <nil>")

	neighbour := exec.Command("sleep", "482")
	neighbour.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	require.NoError(t, neighbour.Start())
	out := run()
	require.NoError(t, neighbour.Process.Kill())
	_ = neighbour.Wait()
	require.Contains(t, out, "answer: the daemon shares its control group with 1 other processes")
}
