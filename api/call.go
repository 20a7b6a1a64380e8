package api

import (
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"afoot/auth"
	"afoot/registry"
)

// writeChunk is the most that one write deadline covers.
const writeChunk = 64 << 10

// call is one request under way: who makes it, and the only way to write its
// answer. It belongs to the request's goroutine.
type call struct {
	http.ResponseWriter
	control *http.ResponseController
	api     *API
	id      string
	started time.Time

	// route is what the request was found to be, target the id in its path or of what
	// it made.
	route  *route
	target string
	// span is the request in a trace; nil without one, and once a stream is open.
	span trace.Span

	principal auth.Principal
	caller    registry.Caller

	// unread says that the request has a body that was not read to its end.
	unread bool
	// arrived says that the answer was flushed to a caller who was there.
	arrived bool
	// status is 0 until the answer has begun.
	status int
	bytes  int64
	// code is the refusal that was answered, if one was.
	code registry.Code
}

// callOf finds the call below what middleware wrapped around it.
func callOf(w http.ResponseWriter) *call {
	for {
		switch v := w.(type) {
		case *call:
			return v
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			panic("api: a middleware hides the response writer")
		}
	}
}

// task is the task that the path names.
func (c *call) task() registry.ID { return registry.ID(c.target) }

// taskID is the task that the request is about, if it is a possible one; else "".
func (c *call) taskID() string {
	if c.route == nil || !strings.HasPrefix(c.route.pattern, "/tasks") && !strings.HasPrefix(c.route.pattern, "/tools") {
		return ""
	}
	if _, _, ok := c.task().Parse(); !ok {
		return ""
	}
	return c.target
}

// Unwrap lets [http.ResponseController] reach the server's writer.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader begins the answer.
func (c *call) WriteHeader(status int) {
	if c.status == 0 {
		c.begin(status)
	}
	c.arm()
	c.ResponseWriter.WriteHeader(status)
}

// Write sends p in pieces, each under a deadline of its own: a slow reader is
// served, one that stopped reading is not.
func (c *call) Write(p []byte) (n int, err error) {
	c.begun()
	for {
		piece := p[n:min(len(p), n+writeChunk)]
		c.arm()
		m, err := c.ResponseWriter.Write(piece) //nolint:gosec // no answer but the page's is HTML, and nosniff is set
		n += m
		c.bytes += int64(m)
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// ReadFrom sends src under one deadline, by sendfile where that can be: src should
// be a small piece of a file.
func (c *call) ReadFrom(src io.Reader) (int64, error) {
	c.begun()
	c.arm()
	n, err := io.Copy(c.ResponseWriter, src)
	c.bytes += n
	return n, err
}

// FlushError sends what was written. Without an error the system has taken it.
func (c *call) FlushError() error {
	c.begun()
	c.arm()
	return c.control.Flush()
}

// Flush is for writers that cannot hear of errors.
func (c *call) Flush() { _ = c.FlushError() }

func (c *call) begun() {
	if c.status == 0 {
		c.begin(http.StatusOK)
	}
}

// begin notes the status. The server would drain an unread body before it sends
// anything, for as long as the client likes: such a connection is closed instead.
func (c *call) begin(status int) {
	c.status = status
	if c.unread {
		c.Header().Set("Connection", "close")
	}
}

// arm bounds the next write. A writer without deadlines (a test's recorder) has
// nothing to bound.
func (c *call) arm() {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.api.writeTimeout))
}
