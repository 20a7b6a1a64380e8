package proc

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// runAsHost runs this program as a host below a shell that prepares it.
func runAsHost(t *testing.T, prepare, command string) string {
	t.Helper()
	cmd := exec.Command(bash(), "-c", prepare+` exec "$0" -test.run=none`, os.Args[0])
	cmd.Env = append(os.Environ(), asHost+"="+command)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

func TestA10InheritedDispositionsDoNotReachChildren(t *testing.T) {
	out := runAsHost(t, `trap "" HUP INT QUIT TSTP TTIN TTOU USR1 PIPE TERM XFSZ RTMIN+5;`, `grep -E "Sig(Ign|Blk)" /proc/self/status`)
	require.Equal(t, []string{"SigBlk:", strings.Repeat("0", 16), "SigIgn:", strings.Repeat("0", 16)}, strings.Fields(out))
}

// GNU make's children have the C library's own signals ignored.
func TestReservedDispositionsDoNotReachChildren(t *testing.T) {
	var ignore [32]byte
	ignore[0] = 1 // SIG_IGN
	for _, n := range []uintptr{32, 33} {
		var old [32]byte
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&ignore)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
		require.Zero(t, errno)
		defer unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0) //nolint:revive // two rounds
	}
	out := runAsHost(t, "", `grep SigIgn /proc/self/status`)
	require.Equal(t, []string{"SigIgn:", strings.Repeat("0", 16)}, strings.Fields(out))
}

func TestInheritedSignalMaskDoesNotReachChildren(t *testing.T) {
	var set, old unix.Sigset_t
	set.Val[0] = 1<<(unix.SIGTERM-1) | 1<<(unix.SIGUSR2-1)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old))
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	out := runAsHost(t, "", `grep SigBlk /proc/self/status`)
	require.Equal(t, []string{"SigBlk:", strings.Repeat("0", 16)}, strings.Fields(out))
}

func TestInheritedDescriptorsDoNotReachChildren(t *testing.T) {
	out := runAsHost(t, `exec 9</etc/passwd 7</dev/null;`, `ls /proc/self/fd`)
	require.Equal(t, []string{"0", "1", "2", "3"}, strings.Fields(out))
}
