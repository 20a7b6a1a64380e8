package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"afoot/api/client"
)

const (
	// mcpLease is how long the agent of a bridge outlives its silence, mcpSign the time
	// between two signs of life.
	mcpLease = 2 * time.Minute
	mcpSign  = 20 * time.Second
	// mcpRetry is the time between two attempts to reach the daemon.
	mcpRetry = 200 * time.Millisecond
)

// errMCPSession means that the daemon knows the MCP session no more.
var errMCPSession = errors.New("the daemon does not know the MCP session any more")

// mcpDoor is the daemon as a bridge reaches it, also one that was started anew.
type mcpDoor struct {
	agent string
	// dial finds the daemon again; nil for a private one, which is not started twice.
	dial func() (*remote, error)
	// over ends the bridge.
	over context.CancelCauseFunc

	mu      sync.Mutex
	current *remote
}

func (d *mcpDoor) remote() *remote {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

// redial looks for the daemon, which may have another address now.
func (d *mcpDoor) redial() {
	if d.dial == nil {
		return
	}
	fresh, err := d.dial()
	if err != nil {
		return
	}
	d.mu.Lock()
	old := d.current
	d.current = fresh
	d.mu.Unlock()
	_ = old.close()
}

func (d *mcpDoor) close() error { return d.remote().close() }

// send makes a request of /mcp. While no daemon listens, so that nothing was sent, it
// tries for a while; then it ends the bridge.
func (d *mcpDoor) send(ctx context.Context, method string, body []byte, headers http.Header) (*http.Response, error) {
	for begun := time.Now(); ; d.redial() {
		r := d.remote()
		req, err := http.NewRequestWithContext(ctx, method, r.Server+"mcp", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		maps.Copy(req.Header, headers)
		for _, edit := range r.RequestEditors {
			if err := edit(ctx, req); err != nil {
				return nil, err
			}
		}
		req.Header.Set("Accept", "application/json, text/event-stream")
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/json")
		}
		if d.agent != "" {
			req.Header.Set("Afoot-Agent", d.agent)
		}
		res, err := r.Client.Client.Do(req)
		if err == nil || !unreachable(err) || ctx.Err() != nil {
			return res, err
		}
		if d.dial == nil || time.Since(begun) > patienceTime {
			d.over(noDaemon(err))
			return nil, noDaemon(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(mcpRetry):
		}
	}
}

// answered reads a whole answer: nil for one without content. An error that the
// protocol itself words is an answer.
func answered(res *http.Response) ([]byte, error) {
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusNotFound && res.Header.Get("Content-Type") == "application/problem+json" {
		_, err := client.Check(res, nil)
		if refusal, ok := errors.AsType[*client.RefusalError](err); ok && refusal.Code == client.ErrorCodeNotFound {
			return nil, errMCPSession
		}
		return nil, err
	}
	if res.Header.Get("Content-Type") != "application/json" {
		if _, err := client.Check(res, nil); err != nil {
			return nil, err
		}
		return nil, nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("the connection to the daemon was lost, and with it the answer: %w", err)
	}
	return bytes.TrimSpace(body), nil
}

// live gives signs of life for the agent until ctx ends. An agent that was ended ends
// the bridge.
func (d *mcpDoor) live(ctx context.Context) {
	tick := time.NewTicker(mcpSign)
	defer tick.Stop()
	var away time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := discard(d.remote().ListTasks(ctx, &client.ListTasksParams{AfootAgent: optional(d.agent), Limit: optional(int64(1))}))
		refusal, refused := errors.AsType[*client.RefusalError](err)
		switch {
		case err == nil:
			away = time.Time{}
		case refused && (refusal.Code == client.ErrorCodeGone || refusal.Code == client.ErrorCodeUnknownAgent):
			d.over(fmt.Errorf("the agent %s was ended: %s", d.agent, refusal.Detail))
		case refused:
		case away.IsZero():
			away = time.Now()
			d.redial()
		case time.Since(away) > patienceTime:
			d.over(noDaemon(err))
		default:
			d.redial()
		}
	}
}
