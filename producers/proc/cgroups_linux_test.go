package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func countGroups(t *testing.T, host *Host) int {
	t.Helper()
	if host.nets.cgroups == nil {
		return 0
	}
	entries, err := filepath.Glob(filepath.Join(host.nets.cgroups.dir(), "t*"))
	require.NoError(t, err)
	return len(entries)
}

// Who is not in the group is no member, whatever its number says.
func TestStrangersAreNoMembers(t *testing.T) {
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		c := host.nets.cgroups
		if c == nil {
			t.Skip("no control groups")
		}
		p, out := start(t, host, `echo up; exec sleep 451`)
		line(t, out)
		stranger := exec.Command("sleep", "452")
		require.NoError(t, stranger.Start())
		name := groupName(p.tree.net.(*cgroup).current())
		_, ok, err := c.member(p.Pid(), name)
		require.NoError(t, err)
		require.True(t, ok)
		_, ok, err = c.member(stranger.Process.Pid, name)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, stranger.Process.Kill())
		_ = stranger.Wait()
		p.Stop(time.Second)
		finish(t, p)
	})
}

// Whatever a tree does to its group, no other one notices, and groups below it go too.
func TestWhatIsDoneToAGroupTroublesNoOther(t *testing.T) {
	host, err := NewHost(Config{Net: netCgroup})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	dir := host.nets.cgroups.dir()
	for _, tamper := range []string{
		`mkdir "$G/below" "$G/below/more"; echo $$ >"$G/below/more/cgroup.procs"; sleep 461 & exec sleep 461`,
		`mkdir "$G/below"; echo threaded >"$G/below/cgroup.type"`,
		`echo threaded >"$G/cgroup.type"`,
		`(sleep 0.05; exec true) & echo 1 >"$G/cgroup.freeze"`,
		`echo 1 >"$G/cgroup.kill"; sleep 462`,
		`mkdir "$G/below"; echo 1 >"$G/below/cgroup.kill"; echo 1 >"$G/cgroup.max.descendants"`,
	} {
		p, _ := start(t, host, `G="`+dir+`/../$(grep -o 'afoot-.*' /proc/self/cgroup)"; `+tamper)
		if strings.Contains(tamper, "sleep 461") || strings.Contains(tamper, "freeze") {
			p.Stop(100 * time.Millisecond)
		}
		p.Wait()
		_, err := p.Reap()
		require.NoError(t, err)
		p.Tree().Stop(0)
		require.False(t, p.Tree().Left())
		for range 2 * spareGroups {
			next, out := start(t, host, "echo fine")
			require.Equal(t, "fine", line(t, out), tamper)
			finish(t, next)
		}
	}
	require.Eventually(t, func() bool { return countGroups(t, host) <= spareGroups+2 }, 20*time.Second, time.Millisecond)
}

// Groups of dead hosts are removed, and who is left in them is ended; those of living
// hosts are left alone.
func TestStaleGroupsAreRemoved(t *testing.T) {
	host, err := NewHost(Config{Net: netCgroup})
	if err != nil {
		t.Skip(err)
	}
	home := host.nets.cgroups.home.dir
	stale, full := filepath.Join(home, basePrefix+"1-test"), filepath.Join(home, basePrefix+"2-test")
	for _, dir := range []string{stale, stale + "/t1", full, full + "/t1"} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	dir, err := os.Open(full + "/t1")
	require.NoError(t, err)
	left := exec.Command("sleep", "471")
	left.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	require.NoError(t, left.Start())
	require.NoError(t, dir.Close())
	p, out := start(t, host, "echo up; exec sleep 472")
	line(t, out)
	other, err := NewHost(Config{Net: netCgroup})
	require.NoError(t, err)
	requireRemoved(t, stale, full)
	require.Error(t, left.Wait())
	require.Equal(t, syscall.SIGKILL, left.ProcessState.Sys().(syscall.WaitStatus).Signal())
	require.DirExists(t, host.nets.cgroups.dir())
	require.True(t, alive(p.Pid()))
	p.Stop(time.Second)
	finish(t, p)
	base := host.nets.cgroups.dir()
	require.NoError(t, other.Close())
	require.NoError(t, host.Close())
	require.NoDirExists(t, base)
}

func TestHomesIn(t *testing.T) {
	//nolint:dupword // so it is written
	const line = "41 31 0:38 %s %s rw,relatime shared:5 - cgroup2 cgroup2 rw\n"
	//nolint:dupword // so it is written
	const v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	for _, c := range []struct {
		mounts, groups string
		want           []home
		says           string
	}{
		{v1 + fmt.Sprintf(line, "/", "/sys/fs/cgroup/unified"), "4:memory:/x\n0::/\n", []home{{"/sys/fs/cgroup/unified", "/"}}, ""},
		{fmt.Sprintf(line, "/", "/sys/fs/cgroup"), "0::/user.slice/a b\n", []home{{"/sys/fs/cgroup/user.slice/a b", "/user.slice/a b"}}, ""},
		{fmt.Sprintf(line, "/docker/abc", "/a\\040b"), "0::/docker/abc/d\n", []home{{"/a b/d", "/docker/abc/d"}}, ""},
		{fmt.Sprintf(line, "/docker/abc", "/m"), "0::/docker/abcd\n", nil, "not in what is mounted"},
		{fmt.Sprintf(line, "/", "/m"), "0::/../x\n", []home{{"/x", "/../x"}}, ""},
		{v1, "0::/\n", nil, "not mounted"},
		{v1, "4:memory:/x\n", nil, "no control groups of version 2"},
	} {
		got, err := homesIn(c.mounts, c.groups)
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}
