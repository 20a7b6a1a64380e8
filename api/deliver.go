package api

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"afoot/api/render"
	"afoot/registry"
)

// deliver writes a consuming read and commits it: cursor and notice move only if
// the flush returned no error and the caller was still there.
func (c *call) deliver(r *http.Request, d *registry.Delivery, how *reading) error {
	if err := c.send(r, d.Read, how); err != nil {
		return err
	}
	if c.arrived { // else gone: the text stays unread
		c.confirm(d.Snapshot.ID, d.Confirm)
	}
	return nil
}

func (c *call) confirm(id registry.ID, confirm func() error) {
	if err := confirm(); err != nil {
		c.api.log.Warn("a delivered read could not be recorded",
			slog.String(keyRequest, c.id), slog.String(keyTask, string(id)), slog.Any(keyError, err))
	}
}

// send writes a read, as JSON or as text for a model, and flushes it. After an
// error the connection is of no use any more.
func (c *call) send(r *http.Request, read registry.Read, how *reading) error {
	h := c.Header()
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept")
	tellRead(h, read)
	tellClamped(h, how.wait.clamped)
	if how.wait.asked && !read.Snapshot.Status.Terminal() && c.api.isLeaving() {
		h.Set("Retry-After", "0") // it was cut short
	}
	var body []byte
	if how.text {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		body = []byte(render.Read(read))
	} else {
		h.Set("Content-Type", "application/json")
		body = encode(wireRead(read, how.wait.clamped))
	}
	return c.handOver(r, how.status, body)
}

// tellRead has the headers of a read.
func tellRead(h http.Header, read registry.Read) {
	h.Set("Afoot-Offset", strconv.FormatInt(read.Offset, 10))
	h.Set("Afoot-Next-Offset", strconv.FormatInt(read.NextOffset, 10))
	h.Set("Afoot-Eof", strconv.FormatBool(read.EOF))
	h.Set("Afoot-Dropped-Bytes", strconv.FormatInt(read.Dropped, 10))
}

// tellClamped names the bound that was used in the place of a larger one, if there is
// one.
func tellClamped(h http.Header, bound time.Duration) {
	if bound > 0 {
		h.Set("Afoot-Timeout-Ms", strconv.FormatInt(bound.Milliseconds(), 10))
	}
}

// handOver writes a whole answer, flushes it, and notes whether it arrived. After an
// error the connection is of no use any more.
func (c *call) handOver(r *http.Request, status int, body []byte) error {
	if c.status == 0 { // else it has begun, and has no length
		c.Header().Set("Content-Length", strconv.Itoa(len(body)))
		c.WriteHeader(status)
	}
	if r.Method == http.MethodHead {
		body = nil
	}
	// A caller may leave the moment it has everything, so what counts is whether it
	// was there before the last byte was sent, and was not found gone by that. The last
	// byte is written alone: a long body does not wait for the flush.
	last := max(0, len(body)-1)
	if _, err := c.Write(body[:last]); err != nil {
		return c.lost(r, err)
	}
	live := r.Context().Err() == nil
	if _, err := c.Write(body[last:]); err != nil {
		return c.lost(r, err)
	}
	if err := c.FlushError(); err != nil {
		return c.lost(r, err)
	}
	c.arrived = live && !gone(r.Context())
	return nil
}

// lost notes that an answer did not arrive, and aborts the connection.
func (c *call) lost(r *http.Request, err error) error {
	c.api.log.Debug("an answer was not written",
		slog.String(keyRequest, c.id), slog.String(keyPath, r.URL.Path), slog.Any(keyError, err))
	return http.ErrAbortHandler
}
