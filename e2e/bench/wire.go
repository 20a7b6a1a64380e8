package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// wire makes calls over kept connections with as little between the clock and the
// server as HTTP allows: what is measured is the server, not a client library.
// Floors are called by it as well.
type wire struct {
	ctx   context.Context
	addr  string
	token string
	free  chan *link
}

// link is one connection; it belongs to whoever took it.
type link struct {
	net.Conn
	in *bufio.Reader
}

// newWire keeps at most connections open; more may be in use.
func newWire(ctx context.Context, base, token string, connections int) *wire {
	return &wire{ctx: ctx, addr: strings.TrimPrefix(base, "http://"), token: token, free: make(chan *link, connections)}
}

func (c *wire) close() {
	for {
		select {
		case l := <-c.free:
			_ = l.Close()
		default:
			return
		}
	}
}

func (c *wire) take() (*link, error) {
	select {
	case l := <-c.free:
		return l, nil
	default:
	}
	conn, err := new(net.Dialer).DialContext(c.ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	return &link{Conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *wire) give(l *link) {
	select {
	case c.free <- l:
	default:
		_ = l.Close()
	}
}

// call makes one call and decodes its answer into v.
func (c *wire) call(method, path string, body []byte, v any) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	l, err := c.take()
	if err != nil {
		return err
	}
	data, err := l.call(c, method, path, body)
	if err != nil {
		_ = l.Close()
		return err
	}
	c.give(l)
	return json.Unmarshal(data, v)
}

func (l *link) call(c *wire, method, path string, body []byte) ([]byte, error) {
	out := make([]byte, 0, 1024)
	out = fmt.Appendf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, path, c.addr, c.token)
	if body != nil {
		out = fmt.Appendf(out, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	out = append(append(out, "\r\n"...), body...)
	if _, err := l.Write(out); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s %s", method, path, resp.Status, data)
	}
	return data, err
}
