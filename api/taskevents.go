package api

import (
	"net/http"
	"strconv"

	"afoot/api/wire"
	"afoot/registry"
	"afoot/sse"
)

// feedPiece bounds the raw output of one event.
const feedPiece = 64 << 10

// streamTaskEvents answers GET /tasks/{id}/events.
func (a *API) streamTaskEvents(c *call, r *http.Request) error {
	v := &view{call: c, r: r}
	q := queryOf(r, "offset", "stream")
	v.at, _ = q.number("offset", 0)
	v.stream = q.stream()
	if q.err != nil {
		return q.err
	}
	changed, remove := a.watchers.add(c.task())
	defer remove()
	if err := v.open(); err != nil {
		return err
	}
	defer v.close()
	if r.Method == http.MethodHead {
		c.Header().Set("Content-Type", "text/event-stream")
		c.Header().Set("Cache-Control", "no-store")
		c.WriteHeader(http.StatusOK)
		return nil
	}
	// The feed bounds its own writes, so it gets the server's writer.
	c.status = http.StatusOK
	feed, err := a.hub.OpenFeed(c.streamWriter(), r, c.principal.Session, c.principal.Subject, c.principal)
	if err != nil {
		c.status = 0 // nothing was written
		return err
	}
	defer feed.Close()
	v.run(feed, changed)
	return nil
}

// view is one look at a task that goes on.
type view struct {
	*call
	r      *http.Request
	stream string
	// log says when there is more; it is nil for work that has final output only.
	log registry.RawLog
	// at is the next byte to send, skipped counts those before it that are gone and
	// not yet told, gap is the reason to begin with a gap event.
	at, skipped int64
	gap         string
	// next and ended are what the output was just before the last look.
	next  int64
	ended bool
	// read is the newest look, shown the state that was sent last.
	read  registry.Read
	shown registry.Snapshot
}

// open takes the first look, from where the client says that it was.
func (v *view) open() (err error) {
	v.log, err = v.api.service.OpenLog(v.r.Context(), v.caller, v.task(), v.stream)
	if err != nil && registry.CodeOf(err) != registry.CodeConflict {
		return err
	}
	if err = v.place(); err != nil {
		v.close()
	}
	return err
}

// place reads Last-Event-ID, which goes before the offset: a client that comes back
// asks for the same address.
func (v *view) place() error {
	id := v.r.Header.Get("Last-Event-ID")
	if id == "" {
		return v.look()
	}
	at, ok := decimal(id)
	if !ok || strconv.FormatInt(at, 10) != id {
		v.gap = sse.GapNotAnID
	} else {
		v.at = at
		err := v.look()
		if registry.CodeOf(err) != registry.CodeInvalid {
			return err
		}
		v.gap = sse.GapAhead
	}
	v.at = 0
	err := v.look()
	v.skipped = 0 // the gap says so
	return err
}

func (v *view) close() {
	if v.log != nil {
		_ = v.log.Close()
	}
}

// look reads the next piece and accounts for what is gone before it.
func (v *view) look() error {
	if v.log != nil {
		_, v.next, v.ended = v.log.Bounds()
	}
	read, err := v.api.service.Look(v.r.Context(), v.caller, v.task(), v.at, registry.LookOptions{Stream: v.stream, LimitBytes: feedPiece})
	if err != nil {
		return err
	}
	v.skipped += max(read.Offset-v.at, 0)
	v.read, v.at = read, read.NextOffset
	return nil
}

// run sends what there is and what comes, until the end of the task or of the feed.
func (v *view) run(feed *sse.Feed, changed <-chan struct{}) {
	if v.gap != "" && !feed.Gap(v.gap) || !v.tellStatus(feed) {
		return
	}
	for {
		if !v.tellOutput(feed) {
			return
		}
		if v.read.EOF {
			feed.Send("", "end", encode(wireSnapshot(v.read.Snapshot)))
			return
		}
		if !v.read.Snapshot.Status.Terminal() && !v.tellStatus(feed) {
			return
		}
		if v.read.Text == "" && !feed.Wait(v.more(), changed) {
			return
		}
		if err := v.look(); err != nil {
			v.broken(feed, err)
			return
		}
	}
}

// more gives a channel that is closed when there is more output than there was
// before the last look. Bytes of a character that is not whole do not count again.
func (v *view) more() <-chan struct{} {
	if v.log == nil || v.ended {
		return nil // what comes next is the end of the task
	}
	return v.log.Grown(v.next)
}

func (v *view) tellOutput(feed *sse.Feed) bool {
	if v.read.Text == "" && (v.skipped == 0 || !v.read.EOF) {
		return true
	}
	skipped := v.skipped
	v.skipped = 0
	return feed.Send(strconv.FormatInt(v.at, 10), "output", encode(wire.TaskOutput{Text: v.read.Text, SkippedBytes: skipped}))
}

// tellStatus sends the state if it is another one than was sent last.
func (v *view) tellStatus(feed *sse.Feed) bool {
	s := v.read.Snapshot
	if s.Status == v.shown.Status && s.Detail == v.shown.Detail && s.Reported == v.shown.Reported {
		return true
	}
	v.shown = s
	return feed.Send("", "status", encode(wireSnapshot(s)))
}

// broken ends a feed whose task can't be looked at any more.
func (v *view) broken(feed *sse.Feed, err error) {
	switch registry.CodeOf(err) {
	case registry.CodeGone, registry.CodeUnknownTask, registry.CodeUnknownAgent:
		feed.Bye(sse.ByeGone)
	default:
		if v.r.Context().Err() == nil {
			v.logCause(problemOf(err), err)
		}
	}
}
