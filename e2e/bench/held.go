package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// held are open connections on each of which one request was sent. They cost this
// process a descriptor each and no goroutine.
type held struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (h *held) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
}

// hold opens n connections and sends path(i) with token(i) on each. With answered
// it also waits for the header of a 200; otherwise nothing is read.
func hold(ctx context.Context, base string, n int, answered bool, path func(int) string, token func(int) (string, error)) (*held, error) {
	h := &held{}
	addr := strings.TrimPrefix(base, "http://")
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i := range n {
		group.Go(func() error {
			bearer, err := token(i)
			if err != nil {
				return err
			}
			conn, err := (&net.Dialer{Timeout: 20 * time.Second}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return err
			}
			h.mu.Lock()
			h.conns = append(h.conns, conn)
			h.mu.Unlock()
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path(i), addr, bearer); err != nil {
				return err
			}
			if !answered {
				return nil
			}
			return header(conn)
		})
	}
	if err := group.Wait(); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// header reads an answer's header.
func header(conn net.Conn) error {
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	var got []byte
	buf := make([]byte, 2048)
	for !bytes.Contains(got, []byte("\r\n\r\n")) {
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		got = append(got, buf[:n]...)
	}
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
		return errors.New(string(got))
	}
	return conn.SetReadDeadline(time.Time{})
}
