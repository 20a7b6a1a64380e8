package proc

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestManyStopAtOnce(t *testing.T) {
	host := newHost(t)
	var stops sync.WaitGroup
	for range 30 {
		p, out := start(t, host, `trap "" TERM; echo $$; sleep 351 & wait; wait`)
		pidLine(t, out)
		stops.Go(func() {
			p.Stop(50 * time.Millisecond)
			p.Wait()
			if exit, err := p.Reap(); err != nil || exit.Signal != syscall.SIGKILL {
				t.Errorf("%v, %v", exit, err)
			}
			p.Tree().Stop(0)
			if p.Tree().Left() {
				t.Errorf("somebody is left of %d", p.Pid())
			}
		})
	}
	stops.Wait()
}

// TestCensusIsSharedByThoseWhoAskDuringAPass holds a pass until all have asked.
func TestCensusIsSharedByThoseWhoAskDuringAPass(t *testing.T) {
	const n = 30
	var c census
	c.init()
	held, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	c.told = func(*pass) { first.Do(func() { close(held); <-release }) }
	var asking sync.WaitGroup
	asking.Go(func() { c.look() })
	<-held
	var asked atomic.Int32
	passes := make(chan *pass, n)
	for range n {
		asking.Go(func() {
			asked.Add(1)
			passes <- c.look()
		})
	}
	require.Eventually(t, func() bool { return asked.Load() == n }, 5*time.Second, time.Millisecond)
	close(release)
	asking.Wait()
	close(passes)
	different := make(map[*pass]struct{})
	for p := range passes {
		require.NoError(t, p.err)
		_, ok := p.alive(os.Getpid())
		require.True(t, ok)
		different[p] = struct{}{}
	}
	// One, but for those who had not got as far as their question.
	require.Less(t, len(different), n/3)
}
