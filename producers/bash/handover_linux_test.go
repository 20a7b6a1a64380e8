package bash

import (
	"encoding/json"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What was handed over stays as it is though its leftovers end and somebody asks for
// them, and goes when it is taken back.
func TestNothingIsGivenBackWhileItIsHandedOver(t *testing.T) {
	for _, net := range movingNets(t) {
		t.Run(net, func(t *testing.T) {
			stand := newStand(t, func(c *Config) { c.Net = net })
			task := stand.run("sleep 344 >/dev/null 2>&1 & echo $!")
			task.end()
			data, err := stand.HandOver()
			require.NoError(t, err)
			var p producerState
			require.NoError(t, json.Unmarshal(data, &p))
			var host struct{ Process []struct{ Handle int } }
			require.NoError(t, json.Unmarshal(p.Host, &host))
			require.Len(t, host.Process, 1)
			require.NoError(t, syscall.Kill(task.pid(0), syscall.SIGKILL))
			require.Eventually(t, func() bool { return !alive(task.pid(0)) }, 20*time.Second, time.Millisecond)
			require.True(t, task.Left())
			require.Equal(t, 1, stand.Haunted())
			gone := task.StopLeftovers("")
			_, err = unix.FcntlInt(uintptr(host.Process[0].Handle), unix.F_GETFD, 0)
			require.NoError(t, err)
			stand.TakeBack()
			<-gone
			require.False(t, task.Left())
		})
	}
}

// A stop that is asked for while a hand-over is taken back begins once.
func TestAStopDuringATakeBackBeginsOnce(t *testing.T) {
	stand := newStand(t)
	var tasks []*task
	for range 40 {
		k := stand.run("sleep 345 >/dev/null 2>&1 & exit 0")
		k.end()
		tasks = append(tasks, k)
	}
	_, err := stand.HandOver()
	require.NoError(t, err)
	var asking sync.WaitGroup
	begin := make(chan struct{})
	for _, k := range tasks {
		asking.Go(func() {
			<-begin
			if gone := k.StopLeftovers(""); gone != nil {
				<-gone
			}
		})
	}
	close(begin)
	stand.TakeBack()
	asking.Wait()
	require.Zero(t, stand.Haunted())
}
