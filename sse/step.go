package sse

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"time"

	fanout "github.com/r3labs/sse/v2"
)

// flight is what a stream has on its way to the client.
type flight int

const (
	flightNone flight = iota
	// flightNotice is the notice that the cursor stands on.
	flightNotice
	flightGap
	// flightOther is something that nothing depends on.
	flightOther
	flightBye
)

// step gives the package the next event, if something is due and nothing is on
// its way. Anyone may take it at any time; it never blocks: the package's buffer
// has room for the one event that can be on its way.
func (c *stream) step() {
	over := c.sub.Right != nil && c.sub.Right.Ended()
	c.session.mu.Lock()
	event := c.dueLocked(over)
	c.session.mu.Unlock()
	if event != nil && len(event.ID) > 0 && c.sub.Shape != nil {
		event.Data = c.sub.Shape(event.Data)
	}
	if event != nil && !c.hub.fanout.TryPublish(c.id, event) {
		c.cancel() // the package's stream is gone, or broke its promise
	}
}

// dueLocked chooses the next event and puts it in flight; over says that the right to
// the stream has ended. What comes at most
// once in a while goes before notices, so that these can't starve it.
func (c *stream) dueLocked(over bool) *fanout.Event {
	if c.phase != phaseOpen || c.flight != flightNone {
		return nil
	}
	if over {
		c.byeLocked(ByeTokenExpired)
	}
	switch {
	case c.bye != "":
		c.flight = flightBye
		return &fanout.Event{Event: []byte("bye"), Data: reasonData(c.bye)}
	case c.gap != "":
		c.flight = flightGap
		reason := c.gap
		c.gap = ""
		return &fanout.Event{Event: []byte("gap"), Data: reasonData(reason)}
	case len(c.changed) > 0:
		agent := c.changed[0]
		c.changed = c.changed[1:]
		c.flight = flightOther
		return &fanout.Event{Event: []byte("tasks.changed"), Data: changedData(agent)}
	case c.beat:
		c.beat = false
		c.flight = flightOther
		return &fanout.Event{Comment: []byte("heartbeat")}
	}
	e := c.session.log.next(&c.cursor)
	if e == nil {
		return nil
	}
	c.flight = flightNotice
	if !c.sub.Observe {
		e.flown = true
	}
	return &fanout.Event{
		ID:    formatID(c.hub.cfg.Epoch, e.number),
		Event: []byte(e.notice.Event),
		Data:  e.notice.Data,
	}
}

// flushed is told by the guard that a flush ended. Only here, and only if the
// request was live and the system knows of no departure, an event has arrived.
func (c *stream) flushed(event, live bool, err error) {
	if err != nil || !live || event && c.sub.Gone != nil && c.sub.Gone() {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.hub.cfg.Logger.LogAttrs(c.ctx, slog.LevelInfo, "stream cut: its client does not read", c.attrs()...)
		}
		c.cancel()
		return
	}
	if !event {
		return
	}
	if c.landed() {
		c.step()
	} else {
		c.cancel()
	}
}

// landed records that the event in flight arrived, and reports whether the
// stream goes on.
func (c *stream) landed() bool {
	s, now := c.session, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	was := c.flight
	c.flight = flightNone
	switch was {
	case flightNotice:
		if !c.sub.Observe {
			s.log.written(c.cursor.after, now)
		}
	case flightGap:
		if !c.sub.Observe && c.gap == "" { // else the next one tells it all
			s.log.told(c.sub.Agent)
		}
	case flightBye:
		c.phase = phaseEnded
	case flightNone, flightOther:
	}
	return was != flightBye
}

// tick is the stream's timer: it makes a heartbeat due.
func (c *stream) tick() {
	s := c.session
	s.mu.Lock()
	if c.phase == phaseOpen {
		c.beat = true
		c.timer.Reset(c.hub.cfg.beat())
	}
	s.mu.Unlock()
	c.step()
}

// byeLocked makes the stream end with a reason; the first one counts.
func (c *stream) byeLocked(reason string) {
	if c.bye == "" {
		c.bye = reason
	}
}

// farewell ends the stream with a reason, and soon.
func (c *stream) farewell(reason string) {
	c.session.mu.Lock()
	c.byeLocked(reason)
	c.session.mu.Unlock()
	c.guard.hurry(farewellTimeout)
	c.step()
}

// cut ends the stream without a word.
func (c *stream) cut() {
	c.cancel()
	c.guard.hurry(0)
}

// reasonData is the data of gap and bye events.
func reasonData(reason string) []byte {
	data, err := json.Marshal(struct {
		Reason string `json:"reason"`
	}{reason})
	if err != nil { // strings always marshal
		return []byte(`{"reason":""}`)
	}
	return data
}
