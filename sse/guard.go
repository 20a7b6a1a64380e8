package sse

import (
	"net/http"
	"sync"
	"time"
)

// emptyID is the line that the package writes for an event without id. It would
// reset a client's last event id, so it never reaches the wire. The package
// writes each line with one call; data lines begin with another word.
const emptyID = "id: \n"

// guard is the response writer that the package gets: each event has a bounded
// time to leave, the first error is the last thing that is tried, and the end of
// every flush is told.
type guard struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// flusher is the first writer beneath w that can say whether a flush failed.
	flusher errorFlusher
	// live says whether the request is; it is asked before every flush, because a
	// client may well leave when it has what it came for.
	live func() bool
	// flushed hears of every flush, on the handler's goroutine: whether it carried
	// an event, whether the request was live, and the first error of the stream so
	// far.
	flushed func(event, live bool, err error)

	// These belong to the handler's goroutine: the first error, and whether bytes
	// were written since the last flush.
	err   error
	event bool

	// mu guards the deadline, which hurry may change from outside while a write is
	// stuck. It is never held during a write.
	mu      sync.Mutex
	limit   time.Duration
	armed   bool
	retired bool
}

type errorFlusher interface{ FlushError() error }

// init refuses writers that would stream but hide errors or never time out.
func (g *guard) init(w http.ResponseWriter, limit time.Duration, live func() bool, flushed func(event, live bool, err error)) error {
	g.w, g.limit, g.live, g.flushed = w, limit, live, flushed
	g.control = http.NewResponseController(w)
	g.flusher = findFlusher(w)
	if g.flusher == nil || g.control.SetWriteDeadline(time.Time{}) != nil {
		return ErrNotStreaming
	}
	return nil
}

func findFlusher(w http.ResponseWriter) errorFlusher {
	for {
		switch t := w.(type) {
		case errorFlusher:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil
		}
	}
}

// Header gives the response's header.
func (g *guard) Header() http.Header { return g.w.Header() }

// Unwrap is for http.ResponseController.
func (g *guard) Unwrap() http.ResponseWriter { return g.w }

// WriteHeader sends the status without the package's Connection header: that is
// the server's affair.
func (g *guard) WriteHeader(status int) {
	g.w.Header().Del("Connection")
	g.w.WriteHeader(status)
}

// Write passes a line on.
func (g *guard) Write(p []byte) (int, error) {
	if !g.event {
		g.event = true
		g.arm()
	}
	if g.err != nil {
		return 0, g.err
	}
	if string(p) == emptyID {
		return len(p), nil
	}
	n, err := g.w.Write(p)
	g.err = err
	return n, err
}

// Flush ends an event, or sends the headers.
func (g *guard) Flush() {
	event, live := g.event, g.live()
	g.event = false
	if !event {
		g.arm()
	}
	if g.err == nil {
		// A wrapper's own Flush may keep accounts, but swallows the error, which the
		// writer beneath repeats.
		if _, direct := g.w.(errorFlusher); !direct {
			if f, ok := g.w.(http.Flusher); ok {
				f.Flush()
			}
		}
		g.err = g.flusher.FlushError()
	}
	g.flushed(event, live, g.err) // first of all: a client may already act on the event
	g.disarm()
}

// arm starts the time of an event.
func (g *guard) arm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = true
	if err := g.control.SetWriteDeadline(time.Now().Add(g.limit)); err != nil && g.err == nil {
		g.err = err
	}
}

// disarm stops it: over HTTP/2 a deadline ends the stream also between writes.
// After an error the deadline stays.
func (g *guard) disarm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = false
	if g.err == nil {
		g.err = g.control.SetWriteDeadline(time.Time{}) // the next event finds an error
	}
}

// hurry bounds every further write, and the one that is stuck now, by less time.
func (g *guard) hurry(limit time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired || limit >= g.limit {
		return
	}
	g.limit = limit
	if g.armed {
		// An error says that the connection is gone, which the write will find.
		_ = g.control.SetWriteDeadline(time.Now().Add(limit))
	}
}

// retire leaves the writer to the server, with a bound on what that still writes
// to end the response. Nothing touches the writer afterwards.
func (g *guard) retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.retired = true
	// An error says that the connection is gone: then nothing is written.
	_ = g.control.SetWriteDeadline(time.Now().Add(g.limit))
}
