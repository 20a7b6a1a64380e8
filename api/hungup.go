package api

import (
	"context"
	"math"
	"syscall"
	"time"
)

// lookEvery is how often the system is asked whether a caller is still there.
const lookEvery = time.Second

// whileThere gives a context that ends with the caller of its request: net/http looks
// no further than the first byte of what a caller sent behind the request, and so does
// not see who leaves after that. The function ends the watch.
func whileThere(ctx context.Context) (context.Context, context.CancelFunc) {
	socket, ok := socketOf(ctx).(syscall.Conn)
	ctx, cancel := context.WithCancel(ctx)
	if !ok {
		return ctx, cancel
	}
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() {
		switch {
		case ctx.Err() != nil:
		case hungUp(socket):
			cancel()
		default:
			timer.Reset(lookEvery)
		}
	})
	timer.Reset(lookEvery) // not before: the look needs the timer
	return ctx, func() {
		cancel()
		timer.Stop()
	}
}
