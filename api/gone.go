package api

import (
	"context"
	"crypto/tls"
	"net"
)

// connKey is where a request's context has its connection.
type connKey struct{}

// ConnContext is for [net/http.Server.ConnContext]: with it the API can ask the
// system whether an answer that was written went to somebody who had left.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// gone reports whether the peer answered what was written with a reset: it had
// closed the connection before, although nobody here had noticed yet. Who takes an
// answer and then leaves is not gone in this sense. It is false where the system
// can't tell.
func gone(ctx context.Context) bool {
	tcp, ok := socketOf(ctx).(*net.TCPConn)
	return ok && wasReset(tcp)
}

// socketOf is the connection of a request as the system knows it; nil if nobody said.
func socketOf(ctx context.Context) net.Conn {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}
