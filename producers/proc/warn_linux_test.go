package proc

import (
	"bytes"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// lines is what was logged.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// withoutKill has this goroutine lack the right to signal processes of others.
func withoutKill(t *testing.T, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var before, without [2]unix.CapUserData
	require.NoError(t, unix.Capget(&head, &before[0]))
	without = before
	without[0].Effective &^= 1 << unix.CAP_KILL
	require.NoError(t, unix.Capset(&head, &without[0]))
	do()
	require.NoError(t, unix.Capset(&head, &before[0]))
}

// Who can't be signalled is told of, once for each tree.
func TestWhoCannotBeSignalledIsToldOfOnce(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("only root runs commands as somebody else")
	}
	for _, net := range []string{netCgroup, netSubreaper, netGroup} {
		for name, command := range map[string]string{
			"leader":        `trap "" TERM; echo $$; while :; do sleep 0.05; done`,
			"child":         `sleep 498 & echo $!; wait`,
			"other session": `setsid bash -c 'echo $$; exec sleep 498'; :`,
		} {
			if net == netGroup && name == "other session" {
				continue
			}
			t.Run(net+" "+name, func(t *testing.T) {
				var log lines
				host, err := NewHost(Config{Net: net, RunAs: &User{65534, 65534}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Skip(err)
				}
				t.Cleanup(func() { require.NoError(t, host.Close()) })
				p, out := start(t, host, "cd /; "+command)
				pid := pidLine(t, out)
				hold := make(chan struct{})
				go func() {
					defer close(hold)
					for begun := time.Now(); len(log.with("level=WARN")) == 0 && time.Since(begun) < 20*time.Second; {
						<-time.After(time.Millisecond)
					}
					<-time.After(time.Second) // it goes on meanwhile
				}()
				withoutKill(t, func() { p.StopUnless(hold, 50*time.Millisecond, new(Escalation)) })
				told := log.with("level=WARN")
				require.Len(t, told, 1)
				require.Contains(t, told[0], "operation not permitted")
				require.True(t, strings.Contains(told[0], " pid="+strconv.Itoa(pid)) || strings.Contains(told[0], " pid="+strconv.Itoa(p.Pid())), told[0])
				p.Stop(0)
				finish(t, p)
				p.Tree().Stop(0)
			})
		}
	}
}
