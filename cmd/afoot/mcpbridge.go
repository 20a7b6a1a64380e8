package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"afoot/api/mcp"
)

const (
	// maxMCPLine bounds one message of a client. The daemon takes 2 MiB and refuses more
	// in an answer to the call; what goes beyond this line is answered to nobody.
	maxMCPLine = 64 << 20
	// mcpFinish is what calls under way get to end when the client has nothing more to
	// say.
	mcpFinish = 500 * time.Millisecond
)

// The protocol's own errors that a bridge words.
const (
	mcpParseError     = -32700
	mcpInvalidRequest = -32600
	mcpInternalError  = -32603
)

// bridge passes messages between a client on standard input and output and a daemon.
type bridge struct {
	door *mcpDoor
	out  io.Writer
	// log is for people.
	log func(format string, args ...any)

	work sync.WaitGroup
	// asked are the calls of work.
	asked sync.WaitGroup
	write sync.Mutex

	mu sync.Mutex
	// calls are under way, by id.
	calls map[string]context.CancelFunc
	mcpSession
}

// run passes messages on until the client has no more, or ctx ends.
func (b *bridge) run(ctx context.Context, in io.Reader) error {
	calls, stop := context.WithCancel(ctx)
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() { // it ends with the standard input, which nothing else can end
		defer close(lines)
		from := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := mcpLine(from, maxMCPLine)
			if errors.Is(err, errMCPLine) {
				b.say(mcpRefusal(nil, mcpInvalidRequest, err.Error()))
				continue
			}
			select {
			case lines <- bytes.TrimSpace(line):
			case <-ctx.Done():
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed <- err
				}
				close(failed)
				return
			}
		}
	}()
	for open := true; open; {
		var line []byte
		select {
		case line, open = <-lines:
			if len(line) > 0 {
				b.take(calls, line)
			}
		case <-ctx.Done():
			open = false
		}
	}
	if ctx.Err() == nil {
		b.drain()
	}
	stop()
	b.work.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := <-failed; err != nil {
		return fmt.Errorf("a message of the client can't be read: %w", err)
	}
	return nil
}

// drain waits a little for calls under way.
func (b *bridge) drain() {
	idle := make(chan struct{})
	go func() { // it ends with them, and so in any case before the bridge
		defer close(idle)
		b.asked.Wait()
	}()
	select {
	case <-idle:
	case <-time.After(mcpFinish):
	}
}

// take passes one message on. Calls run beside each other; everything else keeps its
// order.
func (b *bridge) take(ctx context.Context, line []byte) {
	refused, broken := mcp.Refusal(line)
	m, err := readMCP(line)
	switch {
	case refused != nil:
		b.say(refused)
	case broken != nil, err != nil:
		b.say(mcpRefusal(nil, mcpParseError, "this line is not a JSON-RPC message"))
	case m.Method == "notifications/cancelled":
		b.cancel(m.Params.RequestID)
	case m.Method == "initialize":
		b.begin(m)
		b.call(ctx, m)
	case m.call():
		b.asked.Add(1)
		ctx, done := b.enter(ctx, m.ID) // here, for the next message may cancel it
		b.work.Go(func() {
			defer b.asked.Done()
			defer done()
			b.call(ctx, m)
		})
	default:
		if err := b.pass(ctx, m); err != nil && ctx.Err() == nil {
			b.log("a message of the client was not passed on: %v", err)
		}
		if m.Method == "notifications/initialized" {
			b.work.Go(func() { b.listen(ctx) })
		}
	}
}

// cancel ends a call: the daemon takes the end of its request for that, whether it has
// begun or not.
func (b *bridge) cancel(id json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if end := b.calls[string(id)]; end != nil {
		end()
	}
}

// enter gives a call a context that cancel ends, until done.
func (b *bridge) enter(ctx context.Context, id json.RawMessage) (_ context.Context, done func()) {
	ctx, end := context.WithCancel(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[string(id)] = end
	return ctx, func() {
		end()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.calls, string(id))
	}
}

// call passes a request on and answers it, unless it was cancelled.
func (b *bridge) call(ctx context.Context, m *mcpMessage) {
	if err := b.pass(ctx, m); err != nil && ctx.Err() == nil {
		b.say(mcpRefusal(m.ID, mcpInternalError, plainError(err)))
	}
}

// pass sends a message and says what comes back.
func (b *bridge) pass(ctx context.Context, m *mcpMessage) error {
	for {
		headers, generation, within := b.headers(m)
		res, err := b.door.send(ctx, http.MethodPost, m.text, headers)
		if err != nil {
			return err
		}
		if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			if b.hear(res, m.ID) || !b.pause(ctx) {
				return nil
			}
			continue // the daemon was replaced: the same subscription anew
		}
		answer, err := answered(res)
		if errors.Is(err, errMCPSession) && within {
			if err := b.renew(ctx, generation); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if m.Method == "initialize" {
			b.begun(res.Header.Get(mcpSessionHeader), answer)
		}
		b.say(answer)
		return nil
	}
}

// pause rests between two attempts. It reports false if ctx ended.
func (b *bridge) pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(mcpRetry):
		return true
	}
}

// hear says what a stream brings until it ends, and reports whether that was the
// answer to the call.
func (b *bridge) hear(res *http.Response, id json.RawMessage) (done bool) {
	defer func() { _ = res.Body.Close() }()
	scan := bufio.NewScanner(res.Body)
	scan.Buffer(make([]byte, 0, 64<<10), maxMCPLine)
	event := ""
	for scan.Scan() {
		line := scan.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if line == "" {
			event = ""
		}
		if !ok || event != "" && event != "message" {
			continue
		}
		b.say([]byte(data))
		if answer, err := readMCP([]byte(data)); err == nil && answer.Method == "" && bytes.Equal(answer.ID, id) {
			done = true
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		b.log("a message of the daemon has more than %d bytes, and was given up", maxMCPLine)
	}
	return done
}

// say writes one message as one line.
func (b *bridge) say(text []byte) {
	if len(text) == 0 {
		return
	}
	var line bytes.Buffer
	if json.Compact(&line, text) != nil {
		b.log("the daemon said something that is no message")
		return
	}
	line.WriteByte('\n')
	b.write.Lock()
	defer b.write.Unlock()
	if _, err := b.out.Write(line.Bytes()); err != nil {
		b.door.over(fmt.Errorf("the client does not listen any more: %w", err))
	}
}
