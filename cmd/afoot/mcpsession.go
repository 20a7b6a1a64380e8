package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// mcpSession is the MCP session of a client of the older protocols with the daemon, and
// what it takes to begin it anew. But for the first field the bridge's mutex guards it.
type mcpSession struct {
	// renewing is held by who begins it anew.
	renewing sync.Mutex

	id, version string
	generation  int
	hello       *mcpMessage
	// subscriptions are those in force, by resource.
	subscriptions map[string]*mcpMessage
}

// begin keeps how the client introduced itself.
func (b *bridge) begin(m *mcpMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hello = m
}

// begun notes the session that the daemon made.
func (b *bridge) begun(id string, answer []byte) {
	var reply struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	_ = json.Unmarshal(answer, &reply) // a refusal has none
	b.mu.Lock()
	defer b.mu.Unlock()
	b.id, b.version = id, reply.Result.Version
	b.generation++
}

// headers are those of a message; within says that it belongs to the session, and
// generation to which one.
func (b *bridge) headers(m *mcpMessage) (h http.Header, generation int, within bool) {
	h = http.Header{}
	if m.stateless(h) || m.Method == "initialize" {
		return h, 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m.Method {
	case "resources/subscribe":
		b.subscriptions[m.Params.URI] = m
	case "resources/unsubscribe":
		delete(b.subscriptions, m.Params.URI)
	}
	if b.id == "" {
		return h, 0, false
	}
	h.Set(mcpSessionHeader, b.id)
	h.Set(mcpVersionHeader, b.version)
	return h, b.generation, true
}

// renew begins the session anew, unless somebody did meanwhile: a daemon that was
// started anew knows none.
func (b *bridge) renew(ctx context.Context, generation int) error {
	b.renewing.Lock()
	defer b.renewing.Unlock()
	b.mu.Lock()
	hello, current := b.hello, b.generation
	subscriptions := slices.Collect(maps.Values(b.subscriptions))
	b.mu.Unlock()
	if current != generation {
		return nil
	}
	send := func(m *mcpMessage) (*http.Response, []byte, error) {
		headers, _, _ := b.headers(m)
		res, err := b.door.send(ctx, http.MethodPost, m.text, headers)
		if err != nil {
			return nil, nil, err
		}
		answer, err := answered(res)
		return res, answer, err
	}
	res, answer, err := send(hello.again("afoot-again"))
	if err == nil && res.Header.Get(mcpSessionHeader) == "" {
		err = fmt.Errorf("the daemon makes no MCP session: %s", answer)
	}
	if err != nil {
		return err
	}
	b.begun(res.Header.Get(mcpSessionHeader), answer)
	if _, _, err := send(&mcpMessage{Method: "notifications/initialized", text: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)}); err != nil {
		return err
	}
	for _, m := range subscriptions {
		if _, _, err := send(m.again("afoot-again")); err != nil {
			return err
		}
	}
	b.log("the daemon was started anew; so was the MCP session")
	return nil
}

// listen hears what the daemon says by itself, until ctx ends.
func (b *bridge) listen(ctx context.Context) {
	told := false
	for ctx.Err() == nil {
		rest := mcpRetry
		headers, generation, within := b.headers(&mcpMessage{})
		if !within {
			return
		}
		res, err := b.door.send(ctx, http.MethodGet, nil, headers)
		switch {
		case err != nil:
		case res.StatusCode == http.StatusOK:
			b.hear(res, nil)
		case res.StatusCode == http.StatusNotFound:
			_ = res.Body.Close()
			if err := b.renew(ctx, generation); err != nil && ctx.Err() == nil {
				b.log("the MCP session can't be begun anew: %v", err)
			}
		default:
			_ = res.Body.Close()
			if !told {
				b.log("the daemon gives no stream for what it says by itself, and is asked again: %s", res.Status)
			}
			told, rest = true, mcpSign
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// farewell ends the session.
func (b *bridge) farewell(ctx context.Context) {
	headers, _, within := b.headers(&mcpMessage{})
	if !within {
		return
	}
	if res, err := b.door.send(ctx, http.MethodDelete, nil, headers); err == nil {
		_ = res.Body.Close()
	}
}
