package api

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// lookEvery is how often the system is asked whether a caller is still there.
const lookEvery = time.Second

// whileThere gives a context that ends with the caller of its request: net/http looks
// no further than the first byte of what a caller sent behind the request, and so does
// not see who leaves after that. The function ends the watch.
func whileThere(ctx context.Context) (context.Context, context.CancelFunc) {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	ctx, cancel := context.WithCancel(ctx)
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return ctx, cancel
	}
	var look func()
	look = func() {
		switch {
		case ctx.Err() != nil:
		case hungUp(socket):
			cancel()
		default:
			time.AfterFunc(lookEvery, look)
		}
	}
	time.AfterFunc(lookEvery, look)
	return ctx, cancel
}
