package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// caller makes calls with one token. Floors are called by it as well, so that both
// sides pay for the same client.
type caller struct {
	ctx   context.Context
	http  *http.Client
	base  string
	token string
}

func newCaller(ctx context.Context, base, token string, connections int) *caller {
	transport := &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}
	return &caller{ctx: ctx, http: &http.Client{Transport: transport}, base: base, token: token}
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// call makes one call and decodes its answer into v.
func (c *caller) call(method, path string, body []byte, v any) error {
	resp, err := c.open(method, path, body)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// open makes one call and leaves its answer to be read; a refusal is an error.
func (c *caller) open(method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %s %s", method, path, resp.Status, text)
	}
	return resp, nil
}

// task is what the cases need of a snapshot.
type task struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// read is what the cases need of a read.
type read struct {
	Text     string `json:"text"`
	EOF      bool   `json:"eof"`
	Snapshot task   `json:"snapshot"`
}

// ended checks that an answer tells of a good end: a fast wrong answer is no
// result.
func (r read) ended() error {
	if !r.EOF || r.Snapshot.Status != "completed" || r.Snapshot.Detail != "exit code: 0" {
		return fmt.Errorf("not a good end: %+v", r)
	}
	return nil
}

var (
	startTrue = []byte(`{"kind":"bash","command":"true"}`)
	stampTask = []byte(`{"kind":"bash","command":"echo $EPOCHREALTIME"}`)
)

// startAndCollect is the one round trip.
func (c *caller) startAndCollect() error {
	var r read
	if err := c.call(http.MethodPost, "/tasks?wait=true", startTrue, &r); err != nil {
		return err
	}
	return r.ended()
}

// startThenWait is the two.
func (c *caller) startThenWait() error {
	var t task
	if err := c.call(http.MethodPost, "/tasks", startTrue, &t); err != nil {
		return err
	}
	var r read
	if err := c.call(http.MethodGet, "/tasks/"+t.ID+"/output?wait=true", nil, &r); err != nil {
		return err
	}
	return r.ended()
}
