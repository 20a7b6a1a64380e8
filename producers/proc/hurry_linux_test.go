package proc

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A grace of an hour ends when everybody is told to hurry, and so does the next.
func TestHurryEndsTheGrace(t *testing.T) {
	host := newHost(t)
	for range 2 {
		p, pipe := start(t, host, `trap "" TERM; echo up; while :; do sleep 0.337; done`)
		line := make([]byte, 3)
		_, err := pipe.Read(line)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Stop(time.Hour)
		}()
		host.Hurry()
		p.Wait()
		<-done
		exit, err := p.Reap()
		require.NoError(t, err)
		require.Equal(t, syscall.SIGKILL, exit.Signal)
	}
}
