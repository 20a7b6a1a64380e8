package api

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"afoot/registry"
)

// startTask answers POST /tasks.
func (a *API) startTask(c *call, r *http.Request) error {
	q := queryOf(r, "wait", "timeout_ms")
	wait := a.waitOf(q)
	if q.err != nil {
		return q.err
	}
	explicit, err := wantsExplicitAck(r)
	if err != nil {
		return err
	}
	req, err := startRequest(c, r)
	if err != nil {
		return err
	}
	begin := time.Now()
	req.Await = wait.asked
	started, err := a.service.Start(r.Context(), c.caller, req)
	if err != nil {
		return err
	}
	if started.Release != nil {
		defer started.Release()
	}
	c.target = string(started.Snapshot.ID)
	status := http.StatusCreated
	if started.Replayed {
		status = http.StatusOK
		c.Header().Set("Idempotency-Replayed", "true")
	} else {
		a.metrics.started.Observe(time.Since(begin).Seconds())
	}
	c.Header().Set("Location", "/tasks/"+string(started.Snapshot.ID))
	if !wait.asked {
		return reply(c, r, status, wireSnapshot(started.Snapshot))
	}
	return a.read(c, r, started.Snapshot.ID, &reading{wait: wait, explicit: explicit, status: status})
}

// startRequest reads the request to start from headers and body.
func startRequest(c *call, r *http.Request) (req registry.StartRequest, err error) {
	if req.IdempotencyKey, err = headerText(r, "Idempotency-Key", 255); err != nil {
		return req, err
	}
	body, err := readBody(c, r)
	if err != nil {
		return req, err
	}
	if req.Spec, err = decodeSpec(body); err != nil {
		return req, err
	}
	if req.IdempotencyKey != "" {
		req.Subject = c.principal.Subject
		req.Fingerprint, err = fingerprint(c.caller.Agent, body)
	}
	return req, err
}

// fingerprint stands for a body as JSON, whatever its white space and the order of
// its members, and for the agent.
func fingerprint(agent string, body []byte) (sum [32]byte, err error) {
	canonical := jsontext.Value(slices.Clone(body))
	if err := canonical.Canonicalize(); err != nil {
		return sum, badJSON(err)
	}
	return sha256.Sum256(append([]byte(agent+"\x00"), canonical...)), nil
}
