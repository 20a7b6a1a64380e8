package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// door serves on a listener, and can stop to do so without closing it: whoever comes then
// waits in its backlog.
type door struct {
	listener net.Listener
	tls      *tls.Config // nil without TLS
	server   func() *http.Server

	// current serves, broken has how that ended.
	current *http.Server
	broken  chan error
	entry   *entry

	mu sync.Mutex
	// conns are the open connections, with whether they have sent nothing yet.
	conns map[net.Conn]bool
}

// open begins to serve.
func (d *door) open() {
	d.entry = newEntry(d.listener)
	d.mu.Lock()
	d.conns = make(map[net.Conn]bool)
	d.mu.Unlock()
	d.current, d.broken = d.server(), make(chan error, 1)
	d.current.ConnState = d.track
	var serving net.Listener = d.entry
	if d.tls != nil {
		serving = tls.NewListener(serving, d.tls)
	}
	go func(server *http.Server, broken chan<- error) { broken <- server.Serve(serving) }(d.current, d.broken)
}

// pause takes no more connections. It returns once the server knows of all that were
// taken.
func (d *door) pause() {
	d.entry.pause()
}

func (d *door) track(conn net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(d.conns, conn)
		return
	}
	d.conns[conn] = state == http.StateNew
}

func (d *door) connections() (silent, talking int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, fresh := range d.conns {
		if fresh {
			silent++
		} else {
			talking++
		}
	}
	return silent, talking
}

// silence is what a new connection has to send something.
const silence = time.Second

// finish ends the server behind the answers to all requests that were sent, unless ctx
// ends before. [http.Server.Shutdown] would drop those that it has not read yet.
func (d *door) finish(ctx context.Context) error {
	d.current.SetKeepAlivesEnabled(false)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var err error
	for begun := time.Now(); err == nil; {
		silent, talking := d.connections()
		if talking == 0 && (silent == 0 || time.Since(begun) > silence) {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return errors.Join(err, d.current.Close())
}

// close closes the listener.
func (d *door) close() error {
	if err := d.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// entry is the listener as one server has it: to close it ends that server alone.
type entry struct {
	net.Listener
	pausing atomic.Bool
	// parked is closed when the server waits here and takes nothing.
	parked chan struct{}
	park   sync.Once
	end    chan struct{}
	finish sync.Once
}

// newEntry begins to accept. There is one entry of a listener at a time.
func newEntry(l net.Listener) *entry {
	e := &entry{Listener: l, parked: make(chan struct{}), end: make(chan struct{})}
	e.setDeadline(time.Time{})
	return e
}

// pause returns once nothing is accepted any more and whoever accepts has come back for
// more.
func (e *entry) pause() {
	e.pausing.Store(true)
	e.setDeadline(time.Unix(1, 0))
	<-e.parked
}

// setDeadline is for the listeners of this program, which all can.
func (e *entry) setDeadline(t time.Time) {
	if l, may := e.Listener.(interface{ SetDeadline(t time.Time) error }); may {
		_ = l.SetDeadline(t)
	}
}

// Accept implements [net.Listener].
func (e *entry) Accept() (net.Conn, error) {
	for {
		if e.pausing.Load() {
			e.park.Do(func() { close(e.parked) })
			<-e.end
		}
		select {
		case <-e.end:
			return nil, net.ErrClosed
		default:
		}
		conn, err := e.Listener.Accept()
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return conn, err
		}
	}
}

// Close implements [net.Listener].
func (e *entry) Close() error {
	e.finish.Do(func() {
		close(e.end)
		e.setDeadline(time.Unix(1, 0)) // it may be in Accept
	})
	return nil
}
