package sse

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	fanout "github.com/r3labs/sse/v2"
)

// Subscription says what a stream carries.
type Subscription struct {
	// Session is whose notices are carried. Without one a stream carries the
	// tasks.changed of [Hub.PokeAll] alone.
	Session string
	// Caller is who opens the stream. Without a session streams are counted by this.
	Caller string
	// Agent, when not empty, is the only agent whose notices and changes are carried.
	Agent string
	// Observe makes the stream carry copies: nothing on it counts as delivered.
	Observe bool
	// LastEventID is the client's, verbatim; empty when it has none.
	LastEventID string
	// Gone, when not nil, is asked after a write that succeeded: whether the system
	// knows all the same that the client did not take it.
	Gone func() bool
	// Shape, when not nil, gives what the stream carries as the data of a notice, which
	// it must not change. It is called for each notice, must not block, and is not empty.
	Shape func(data []byte) []byte
	// Right, when not nil, ends the stream with itself.
	Right Right
}

// stream is one open connection. Its own mutex is its session's.
type stream struct {
	hub     *Hub
	session *session
	id      string
	sub     Subscription
	ctx     context.Context //nolint:containedctx // the stream is one request, and ends it
	cancel  context.CancelFunc
	guard   guard
	// unwatch, when not nil, ends the watch over the right.
	unwatch func()
	// callbacks has the package's subscribe and unsubscribe callbacks to wait for.
	callbacks sync.WaitGroup

	// The rest is guarded by session.mu.

	phase  phase
	timer  *time.Timer
	flight flight
	cursor cursor
	// What is due beside notices: the reason of a gap event and of the bye, agents
	// with changes, a heartbeat.
	gap, bye string
	changed  []string
	beat     bool
}

// phase is where a stream is in its life. Only an open one is given events: the
// package drops what comes before its subscribe callback.
type phase int

const (
	phaseOpening phase = iota
	phaseOpen
	phaseEnded
)

// Serve is one stream: headers at once, then what the subscription is due, until
// the client leaves, the subscription's right ends, the stream is cut or the
// hub closes. It blocks until then, and when it returns nothing of the stream is
// left and w is not used any more. The error is one of this package's refusals,
// before anything was written; afterwards it is nil.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, sub Subscription) error {
	c, err := h.open(w, r, sub)
	if err != nil {
		return err
	}
	defer h.close(c)
	h.fanout.CreateStream(c.id)
	h.fanout.ServeHTTP(&c.guard, c.request())
	return nil
}

// request is all that the package gets to know: which stream, and when it is
// over. In particular no Last-Event-ID. It is not inlined because an idle stream
// holds the frame of Serve, and a few hundred bytes more there can double its
// stack.
//
//go:noinline
func (c *stream) request() *http.Request {
	r := http.Request{Method: http.MethodGet, URL: &url.URL{RawQuery: "stream=" + c.id}}
	return r.WithContext(c.ctx)
}

// open takes a place for a stream and puts it where its Last-Event-ID says.
func (h *Hub) open(w http.ResponseWriter, r *http.Request, sub Subscription) (*stream, error) {
	c := &stream{hub: h, sub: sub}
	if err := c.guard.init(w, h.cfg.WriteTimeout, c.live, c.flushed); err != nil {
		return nil, err
	}
	c.callbacks.Add(2)
	c.ctx, c.cancel = context.WithCancel(r.Context())
	c.session = h.acquire(bucket(sub.Session, sub.Caller))
	if err := h.admit(c); err != nil {
		c.cancel()
		h.release(c.session)
		return nil, err
	}
	if !c.place() {
		h.remove(c)
		c.cancel()
		h.release(c.session)
		return nil, ErrTooManyStreams
	}
	if sub.Right != nil {
		c.unwatch = sub.Right.Watch(func() { c.farewell(ByeTokenExpired) })
	}
	h.cfg.Logger.LogAttrs(c.ctx, slog.LevelDebug, "stream opened", c.attrs()...)
	return c, nil
}

func (c *stream) live() bool { return c.ctx.Err() == nil }

// admit makes the stream known to the hub, from where Close and PokeAll reach it.
func (h *Hub) admit(c *stream) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.serial++
	c.id = strconv.FormatUint(h.serial, 36)
	h.streams[c.id] = c
	return nil
}

func (h *Hub) remove(c *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, c.id)
	h.drainedLocked()
}

// place joins the session, if that has room, at the right point of its log.
func (c *stream) place() bool {
	s := c.session
	s.expire(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams)+s.feeds >= int(c.hub.maxStreams.Load()) {
		return false
	}
	c.cursor = cursor{agent: c.sub.Agent}
	if c.sub.Session != "" {
		c.cursor, c.gap = s.log.place(c.sub.Agent, c.hub.cfg.Epoch, c.sub.LastEventID)
		if !c.sub.Observe {
			s.log.arrived(&c.cursor, time.Now())
		}
	}
	s.streams = append(slices.Clone(s.streams), c)
	return true
}

// close gives the stream's place back first, and then waits for what is left of
// it in the package.
func (h *Hub) close(c *stream) {
	c.cancel() // in case of a panic; otherwise this is why we are here
	if c.unwatch != nil {
		c.unwatch()
	}
	s := c.session
	s.mu.Lock()
	c.phase = phaseEnded
	s.streams = slices.DeleteFunc(slices.Clone(s.streams), func(o *stream) bool { return o == c })
	others := s.streams
	if c.timer != nil {
		c.timer.Stop()
	}
	s.mu.Unlock()
	for _, other := range others { // which may have waited for what this one had on its way
		other.step()
	}

	c.callbacks.Wait()
	c.guard.retire()
	h.remove(c)
	h.release(s)
	h.cfg.Logger.LogAttrs(c.ctx, slog.LevelDebug, "stream ended", c.attrs()...)
}

// subscribed is called by the package, on a goroutine of its own, once events
// reach the connection.
func (h *Hub) subscribed(id string, _ *fanout.Subscriber) {
	c := h.stream(id)
	defer c.callbacks.Done()
	s := c.session
	s.mu.Lock()
	if c.phase == phaseOpening {
		c.phase = phaseOpen
		c.timer = time.AfterFunc(h.cfg.beat(), c.tick)
	}
	s.mu.Unlock()
	c.step()
}

// unsubscribed is called by the package, on a goroutine of its own, when the
// connection gets no more events. Before that the package's stream must not be
// removed: the goroutine that waits to unsubscribe would be stuck for ever.
func (h *Hub) unsubscribed(id string, _ *fanout.Subscriber) {
	c := h.stream(id)
	defer c.callbacks.Done()
	h.fanout.RemoveStream(id)
}

// stream finds an open stream: none is removed before its callbacks are through.
func (h *Hub) stream(id string) *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams[id]
}

// attrs name the stream in the log; whose it is, the log does not say.
func (c *stream) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("stream", c.id),
		slog.Bool("observe", c.sub.Observe),
	}
}
