package main

import (
	"fmt"
	"net/http"
)

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

// What children do last, as their clock: see [exitToNotice].
const (
	stamp = "echo $EPOCHREALTIME"
	// stampLate rests before: until the stamp the machine has nothing to do.
	stampLate = "sleep .02; " + stamp
)

var startTrue = start("true")

// start is the body of a start.
func start(command string) []byte { return []byte(`{"kind":"bash","command":"` + command + `"}`) }

// startAndCollect is the one round trip.
func (c *wire) startAndCollect() error {
	var r read
	if err := c.call(http.MethodPost, "/tasks?wait=true", startTrue, &r); err != nil {
		return err
	}
	return r.ended()
}

// startThenWait is the two.
func (c *wire) startThenWait() error {
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
