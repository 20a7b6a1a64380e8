package sse

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Feed is a stream of one connection whose events its opener chooses and sends
// itself: nothing is kept, numbered or fanned out. It has a place among its
// session's streams, a bound on each write, heartbeats while it waits, and a last
// word. It belongs to one goroutine, which closes it.
type Feed struct {
	hub     *Hub
	session *session
	ctx     context.Context //nolint:containedctx // the feed is one request, and ends it
	cancel  context.CancelFunc
	guard   guard
	beat    *time.Timer
	// right may be nil; expired is closed when it has ended, and unwatch ends the watch.
	right   Right
	expired chan struct{}
	unwatch func()
	// over is closed, once reason is set, when the hub closes; that may be more than once.
	over   chan struct{}
	reason string
	told   sync.Once
}

// OpenFeed begins a feed: the headers leave at once. Without a session it is counted by
// its caller. Right, when not nil, ends it with itself. The error is one of this package's
// refusals; then nothing was written.
func (h *Hub) OpenFeed(w http.ResponseWriter, r *http.Request, sessionID, caller string, right Right) (*Feed, error) {
	f := &Feed{hub: h, right: right, expired: make(chan struct{}), unwatch: func() {}, over: make(chan struct{})}
	live := func() bool { return f.ctx.Err() == nil }
	if err := f.guard.init(w, h.cfg.WriteTimeout, live, f.flushed); err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(r.Context())
	f.session = h.acquire(bucket(sessionID, caller))
	if err := h.admitFeed(f); err != nil {
		f.cancel()
		h.release(f.session)
		return nil, err
	}
	f.beat = time.NewTimer(h.cfg.beat())
	if right != nil {
		f.unwatch = right.Watch(f.expire)
	}
	for name, value := range h.fanout.Headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	f.guard.WriteHeader(http.StatusOK)
	f.guard.Flush()
	return f, nil
}

// admitFeed takes a place in the session, and makes the feed known to Close.
func (h *Hub) admitFeed(f *Feed) error {
	if !f.session.enter(int(h.maxStreams.Load())) {
		return ErrTooManyStreams
	}
	if !h.keepFeed(f) {
		f.session.leave()
		return ErrClosed
	}
	return nil
}

func (h *Hub) keepFeed(f *Feed) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.feeds[f] = struct{}{}
	}
	return !h.closed
}

// enter counts one more feed, if there is room.
func (s *session) enter(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams)+s.feeds >= most {
		return false
	}
	s.feeds++
	return true
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds--
}

// Close gives the feed's place back; the writer is not used any more.
func (f *Feed) Close() {
	f.cancel()
	f.beat.Stop()
	f.unwatch()
	f.guard.retire()
	f.session.leave()
	f.hub.mu.Lock()
	delete(f.hub.feeds, f)
	f.hub.drainedLocked()
	f.hub.mu.Unlock()
	f.hub.release(f.session)
}

// Send writes one event and reports whether the feed goes on. The id may be empty;
// data is one line and not empty. Instead of an event that comes too late the feed
// says bye.
func (f *Feed) Send(id, event string, data []byte) bool {
	return !f.finished() && f.write(id, event, data)
}

// Gap says that what the client saw last could not be found.
func (f *Feed) Gap(reason string) bool { return f.Send("", "gap", reasonData(reason)) }

// Bye says why the feed ends before its time. Nothing is sent afterwards.
func (f *Feed) Bye(reason string) {
	f.write("", "bye", reasonData(reason))
	f.cancel()
}

// Wait blocks until one of the channels has something, and reports whether the
// feed goes on: not when its client left, its right has ended or the hub closes.
func (f *Feed) Wait(one, other <-chan struct{}) bool {
	for !f.finished() {
		select {
		case <-one:
			return true
		case <-other:
			return true
		case <-f.beat.C:
			if !f.put([]byte(": heartbeat\n\n")) {
				return false
			}
		case <-f.expired:
			f.Bye(ByeTokenExpired)
		case <-f.over:
		case <-f.ctx.Done():
		}
	}
	return false
}

// finished says bye if that is due, and reports whether the feed has ended.
func (f *Feed) finished() bool {
	if f.ctx.Err() != nil {
		return true
	}
	select {
	case <-f.over:
		f.Bye(f.reason)
		return true
	default:
	}
	if f.right != nil && f.right.Ended() {
		f.Bye(ByeTokenExpired)
		return true
	}
	return false
}

func (f *Feed) write(id, event string, data []byte) bool {
	line := make([]byte, 0, len(id)+len(event)+len(data)+len("id: \nevent: \ndata: \n\n"))
	if id != "" {
		line = append(append(append(line, "id: "...), id...), '\n')
	}
	line = append(append(append(line, "event: "...), event...), '\n')
	line = append(append(append(line, "data: "...), data...), '\n', '\n')
	return f.put(line)
}

func (f *Feed) put(p []byte) bool {
	if _, err := f.guard.Write(p); err != nil {
		f.flushed(true, true, err)
		return false
	}
	f.guard.Flush()
	f.beat.Reset(f.hub.cfg.beat())
	return f.ctx.Err() == nil
}

// flushed ends the feed with the first error.
func (f *Feed) flushed(_, _ bool, err error) {
	if err == nil {
		return
	}
	f.hub.cfg.Logger.LogAttrs(f.ctx, slog.LevelDebug, "feed cut", slog.Any("error", err))
	f.cancel()
}

// farewell ends the feed with a reason, and soon; the first one counts.
func (f *Feed) farewell(reason string) {
	f.told.Do(func() {
		f.reason = reason
		close(f.over)
	})
	f.guard.hurry(farewellTimeout)
}

// expire ends the feed with its right, and soon. It is called once.
func (f *Feed) expire() {
	close(f.expired)
	f.guard.hurry(farewellTimeout)
}

// cut ends the feed without a word.
func (f *Feed) cut() {
	f.cancel()
	f.guard.hurry(0)
}
