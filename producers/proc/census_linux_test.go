package proc

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
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
	synctest.Test(t, func(t *testing.T) {
		const n = 30
		var c census
		c.init()
		held, release := make(chan struct{}), make(chan struct{})
		var first sync.Once
		c.told = func(*pass) { first.Do(func() { close(held); <-release }) }
		var asking sync.WaitGroup
		asking.Go(func() { c.look() })
		<-held
		passes := make(chan *pass, n)
		for range n {
			asking.Go(func() { passes <- c.look() })
		}
		synctest.Wait()
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
		require.Len(t, different, 1)
	})
}
