package bash

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/producers/proc"
	"afoot/registry"
)

// haunts counts without looking.
func (s *stand) haunts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.haunted)
}

// Leftovers that end by themselves are noticed though nobody asks, in each net, and
// those of others stay known.
func TestLeftoversThatEndByThemselvesAreNoticed(t *testing.T) {
	for _, net := range []string{"cgroup", "subreaper", "group"} {
		t.Run(net, func(t *testing.T) {
			if host, err := proc.NewHost(proc.Config{Net: net}); err != nil {
				t.Skip(err)
			} else {
				require.NoError(t, host.Close())
			}
			stand := newStand(t, func(c *Config) { c.Net = net })
			stays := stand.run(`sleep 361 >/dev/null 2>&1 & exit 0`)
			stays.end()
			var pids []int
			for i := range 5 {
				setsid := ""
				if net != "group" && i%2 == 0 {
					setsid = "env -i setsid "
				}
				task := stand.run(setsid + `sleep 362 >/dev/null 2>&1 & echo $!`)
				require.Contains(t, task.end().Detail, "left running", i)
				pids = append(pids, task.pid(0))
			}
			for _, pid := range pids {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			require.Eventually(t, func() bool { return stand.haunts() == 1 }, 20*time.Second, 5*time.Millisecond)
			require.True(t, stays.Left())
			<-stays.StopLeftovers("")
			require.Zero(t, stand.haunts())
			stand.mu.Lock()
			defer stand.mu.Unlock()
			require.Empty(t, stand.living)
		})
	}
}

// A close that is given up says at once what it waited for, and may be tried again.
func TestCloseNamesWhatIsLeft(t *testing.T) {
	stand := newStand(t, func(c *Config) { c.Grace = time.Hour })
	live := stand.run(`trap "" TERM; echo $$; while :; do sleep 0.05; done`)
	live.has("\n")
	ended := stand.run(`trap "" TERM; (while :; do sleep 0.05; done) >/dev/null 2>&1 & echo $!`)
	ended.end()
	require.NoError(t, live.Cancel(""))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	err := stand.Close(ctx)
	require.Less(t, time.Since(begun), 30*time.Second)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "2 commands")
	for _, pid := range []int{live.pid(0), ended.pid(0)} {
		require.ErrorContains(t, err, strconv.Itoa(pid)+" (bash)")
	}
	stand.Hurry()
	live.end()
}

func TestAnotherUserIsNotLessNice(t *testing.T) {
	for uid, refused := range map[uint32]bool{65534: true, 0: false} {
		stand := asNobody(t, proc.User{UID: uid, GID: uid})
		for nice, wrong := range map[int]bool{-1: refused, -20: refused, 0: false, 5: false} {
			if nice < 0 && !mayNice(nice) {
				continue
			}
			_, err := stand.prepare(fields{"command": "true", "nice": nice})
			if !wrong {
				require.NoError(t, err)
				continue
			}
			require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
			require.ErrorContains(t, err, fmt.Sprintf("nice %d", nice))
		}
	}
}
