package mcp

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"

	"afoot/registry"
)

// delivery is an answer that counts once it has reached its caller.
type delivery interface {
	Confirm() error
	Abandon()
}

// Exchange is one HTTP request and what the protocol answers to it: a whole answer, or
// a stream of messages. Whoever opened it writes that, and ends it by Confirm or
// Abandon. Its methods are for one goroutine.
type Exchange struct {
	server *Server
	who    Who
	body   []byte
	name   string          // what the headers say that the request is about; "" if they don't
	bound  *bound          // nil: not within an MCP session
	opens  bool            // it may begin one
	ctx    context.Context //nolint:containedctx // the exchange is one request, and ends it
	cancel context.CancelFunc
	// request is the life of the request alone.
	request context.Context //nolint:containedctx // as above
	leave   func()
	// returned is closed when the SDK is done with the request, settled then or before,
	// when the answer turned out to be a stream.
	returned, settled chan struct{}
	// ready has something when there are messages to take.
	ready chan struct{}

	mu       sync.Mutex
	header   http.Header
	status   int
	content  bytes.Buffer
	streams  bool
	messages [][]byte
	refusal  error
	carries  []delivery
	read     []registry.ID // the tasks whose output the answer may carry
	over     bool
}

// Answer is a whole answer. Its status is never 0.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Refusal gives the words of an answer that is no message of the protocol: why the
// request was refused before it was read as one.
func (a *Answer) Refusal() (words string, is bool) {
	if a.Status < http.StatusBadRequest || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		return "", false
	}
	return strings.TrimPrefix(strings.TrimSpace(string(a.Body)), "Bad Request: "), true
}

// Opens says that the answer may name a new MCP session in its header.
func (x *Exchange) Opens() bool { return x.opens }

// Settled is closed when there is an answer or a stream has begun.
func (x *Exchange) Settled() <-chan struct{} { return x.settled }

// Answer waits until that is so, and gives the whole answer. After an error there is
// neither: it is [ErrUnknownSession], an error of [afoot/api/tools.Set.Call], a
// [registry.Error], or the context's.
//
// With a whole answer the request counts as over: a client that has it may begin another
// MCP session before the exchange is ended.
func (x *Exchange) Answer() (answer *Answer, streams bool, err error) {
	<-x.settled
	if answer, streams, err = x.outcome(); !streams {
		x.fallSilent()
	}
	return answer, streams, err
}

func (x *Exchange) outcome() (answer *Answer, streams bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.streams:
		return nil, true, nil
	case x.refusal != nil:
		return nil, false, x.refusal
	case x.status != 0:
		return reworded(x.body, &Answer{Status: x.status, Header: x.header, Body: x.content.Bytes()}), false, nil
	case x.request.Err() != nil:
		return nil, false, x.request.Err()
	default: // the MCP session ended under it
		return nil, false, ErrUnknownSession
	}
}

// Ready has something when [Exchange.Messages] may have some.
func (x *Exchange) Ready() <-chan struct{} { return x.ready }

// Done is closed when the stream has ended.
func (x *Exchange) Done() <-chan struct{} { return x.returned }

// Messages takes what the stream has to say, each a JSON text in one line.
func (x *Exchange) Messages() [][]byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	taken := x.messages
	x.messages = nil
	return taken
}

// Confirm says that the whole answer was written while its caller was there, and ends
// the exchange. It gives the first error of what could not be recorded.
func (x *Exchange) Confirm() error {
	var first error
	for _, d := range x.end() {
		if err := d.Confirm(); err != nil && first == nil {
			first = err
		}
	}
	x.close()
	return first
}

// Abandon ends the exchange: what its answer carried stays unread, calls that run are
// cancelled. It is idempotent, and does nothing after Confirm.
func (x *Exchange) Abandon() {
	for _, d := range x.end() {
		d.Abandon()
	}
	x.close()
}

// end takes what the answer carries; what comes later is abandoned.
func (x *Exchange) end() []delivery {
	x.mu.Lock()
	defer x.mu.Unlock()
	taken := x.carries
	x.carries, x.over = nil, true
	return taken
}

func (x *Exchange) close() {
	x.cancel()
	<-x.returned
	x.fallSilent()
}

// fallSilent ends the request as its MCP session sees it.
func (x *Exchange) fallSilent() {
	x.mu.Lock()
	leave := x.leave
	x.leave = func() {}
	x.mu.Unlock()
	leave()
}

// carry keeps a delivery until the fate of the answer is known. A call that was
// cancelled is answered to nobody.
func (x *Exchange) carry(ctx context.Context, d delivery) {
	x.mu.Lock()
	late := x.over || ctx.Err() != nil
	if !late {
		x.carries = append(x.carries, d)
	}
	x.mu.Unlock()
	if late {
		d.Abandon()
	}
}

// refuse answers the whole request with an error of HTTP.
func (x *Exchange) refuse(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refusal == nil {
		x.refusal = err
	}
	return err
}

// fail has the answer be of this status, whatever the SDK makes of it.
func (x *Exchange) fail(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.beginLocked(status)
}

// whole binds the context of a message to its request: who left is answered no more.
func (x *Exchange) whole(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, exchangeKey{}, x))
	stop := context.AfterFunc(x.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// caller is the proved caller.
func (x *Exchange) caller() registry.Caller { return x.who.Caller }

// writer is the exchange as the SDK sees it.
type writer struct{ x *Exchange }

// Header is what the SDK says of the answer.
func (w writer) Header() http.Header { return w.x.header }

// WriteHeader begins the answer.
func (w writer) WriteHeader(status int) {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	w.x.beginLocked(status)
}

// Write takes a piece of an answer, or one event of a stream.
func (w writer) Write(p []byte) (int, error) {
	x := w.x
	x.mu.Lock()
	defer x.mu.Unlock()
	x.beginLocked(http.StatusOK)
	if !x.streams {
		return x.content.Write(p)
	}
	if x.over {
		return 0, context.Canceled
	}
	for line := range bytes.Lines(p) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			x.messages = append(x.messages, bytes.Clone(bytes.TrimSpace(data)))
		}
	}
	select {
	case x.ready <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Flush is there because the SDK flushes.
func (w writer) Flush() {}

// returns ends what the SDK does for the request.
func (x *Exchange) returns() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.streams {
		close(x.settled)
	}
	close(x.returned)
}

func (x *Exchange) beginLocked(status int) {
	if x.status != 0 {
		return
	}
	x.status = status
	if status == http.StatusOK && strings.HasPrefix(x.header.Get("Content-Type"), "text/event-stream") {
		x.streams = true
		close(x.settled)
	}
}
