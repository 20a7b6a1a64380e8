package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// errOver is the end of a life: whatever was asked has no answer.
var errOver = errors.New("the daemon is gone")

// party is one session: what it does, and what it was told. One goroutine at a time
// uses it.
type party struct {
	w    *crasher
	c    *client
	name string
	r    *rand.Rand

	tasks  []*fact
	lost   []*fact // started, without an answer
	agents []*owner
	opened []string // labels of agents that were opened without an answer
	ear
}

// call makes a call. An answer that came whole counts; none is the end of a life, if
// that is due.
func (p *party) call(c *client, method, path string, body any, headers ...string) (*answer, error) {
	if p.w.reloading {
		return p.insist(c, method, path, body, headers...)
	}
	a, err := c.call(p.w.t.Context(), method, path, body, headers...)
	if err != nil {
		if p.w.dying.Load() {
			return nil, errOver
		}
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if a.status == http.StatusServiceUnavailable && p.w.dying.Load() {
		return nil, errOver
	}
	p.w.answered()
	return a, nil
}

// expect decodes an answer, which must have one of the codes.
func expect(a *answer, v any, codes ...int) error {
	for _, code := range codes {
		if a.status != code {
			continue
		}
		if v == nil {
			return nil
		}
		return json.Unmarshal(a.body, v)
	}
	return fmt.Errorf("not one of %v: %s", codes, a)
}

// act does at random what sessions do, until the daemon is gone or that is enough.
func (p *party) act() error {
	p.r = rand.New(rand.NewPCG(p.w.seed, uint64(p.w.life)<<8|uint64(p.name[len(p.name)-1])))
	for !p.w.enough.Load() {
		if err := p.step(); errors.Is(err, errOver) {
			return nil
		} else if err != nil {
			p.w.end()
			return err
		}
	}
	return nil
}

func (p *party) step() error {
	if p.w.reloading {
		if err := p.resume(); err != nil {
			return err
		}
	}
	if len(p.tasks) == 0 {
		return p.start()
	}
	f := p.pick()
	switch n := p.r.IntN(100); {
	case n < 22:
		return p.start()
	case n < 32:
		return p.look(f, false)
	case n < 40:
		return p.look(f, true)
	case n < 52:
		return p.consume(f, "")
	case n < 58:
		return p.consume(f, fmt.Sprintf("&wait=true&timeout_ms=%d", 1+p.r.IntN(60)))
	case n < 68:
		return p.acknowledge(f)
	case n < 76:
		return p.kill(f)
	case n < 80:
		return p.get(f)
	case n < 84:
		return p.replay(f)
	case n < 87:
		return p.input(f)
	case n < 89:
		return p.purge(f)
	case n < 92:
		return p.open()
	case n < 94:
		return p.dispose()
	case n < 97:
		return p.cutAndResume()
	default:
		_, err := p.list()
		return err
	}
}

// pick prefers the young.
func (p *party) pick() *fact {
	n := len(p.tasks)
	if p.r.IntN(4) > 0 && n > 12 {
		return p.tasks[n-1-p.r.IntN(12)]
	}
	return p.tasks[p.r.IntN(n)]
}

func (p *party) start() error {
	s := fates[p.r.IntN(len(fates))]
	if !s.fits(p.w.net) {
		s = fates[0]
	}
	agents := p.living()
	f := &fact{
		script: s, label: fmt.Sprintf("%s %s %s", s.name, p.name, hexText(6)), agent: agents[p.r.IntN(len(agents))],
		life: p.w.life, touched: true,
	}
	f.body = startBody(strings.NewReplacer(" M", " "+p.w.length, "L", f.label).Replace(s.text), fields{"label": f.label})
	if s.stdin {
		f.body["stdin"] = "open"
	}
	if s.split {
		f.body["streams"] = "split"
	}
	if p.r.IntN(4) > 0 {
		f.key = "key " + hexText(8)
	}
	return p.started(f, s.ends && p.r.IntN(3) == 0)
}

// started sends the start of a fact, with its end in the same answer or not.
func (p *party) started(f *fact, collect bool) error {
	floor := p.w.floor("bash")
	path := "/tasks"
	if collect {
		path += "?wait=true&timeout_ms=200"
		f.may = true
	}
	p.lost = append(p.lost, f)
	a, err := p.call(p.acting(f.agent), http.MethodPost, path, f.body, "Idempotency-Key: "+f.key)
	if err != nil {
		return err
	}
	p.lost = p.lost[:len(p.lost)-1]
	if a.status == http.StatusTooManyRequests {
		return nil
	}
	var o output
	if collect {
		err = expect(a, &o, http.StatusCreated)
	} else {
		err = expect(a, &o.Snapshot, http.StatusCreated)
	}
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	f.id = o.Snapshot.ID
	if err := p.w.fresh(f.id, floor); err != nil {
		return err
	}
	p.tasks = append(p.tasks, f)
	if !collect {
		return p.see(f, o.Snapshot)
	}
	return p.took(f, o)
}

// took notes a read that consumes.
func (p *party) took(f *fact, o output) error {
	if o.Offset != f.cursor && o.Offset != f.next {
		return fmt.Errorf("%s %s: a read begins at %d, and the cursor was at %d or %d", f.id, f.label, o.Offset, f.cursor, f.next)
	}
	f.cursor, f.next = o.Offset, o.NextOffset
	f.said = append(f.said, piece{o.Offset, o.Text})
	return p.seeIn(f, o.Snapshot)
}

// look reads by offset, which changes nothing.
func (p *party) look(f *fact, wait bool) error {
	at := int64(0)
	if n := len(f.said); n > 0 && p.r.IntN(2) == 0 {
		last := f.said[n-1]
		at = last.at + int64(p.r.IntN(len(last.text)+1))
	}
	query := fmt.Sprintf("?offset=%d&limit_bytes=%d", at, 1+p.r.IntN(100000))
	if wait {
		query += fmt.Sprintf("&wait=true&timeout_ms=%d", 1+p.r.IntN(60))
	}
	a, err := p.call(p.c, http.MethodGet, "/tasks/"+f.id+"/output"+query, nil)
	if err != nil {
		return err
	}
	if f.gone {
		return expect(a, nil, http.StatusGone)
	}
	var o output
	if err := expect(a, &o, http.StatusOK); err != nil {
		return fmt.Errorf("%s: look: %w", f.label, err)
	}
	f.touched = true
	f.said = append(f.said, piece{o.Offset, o.Text})
	return p.seeIn(f, o.Snapshot)
}

// consume is a read that the daemon counts when it wrote the answer.
func (p *party) consume(f *fact, query string) error {
	if !f.gone {
		f.may = true
	}
	var o struct {
		output
		Stderr *second `json:"stderr"`
	}
	a, err := p.call(p.c, http.MethodGet, fmt.Sprintf("/tasks/%s/output?limit_bytes=%d%s", f.id, 1+p.r.IntN(1000), query), nil)
	if err != nil {
		return err
	}
	if f.gone {
		return expect(a, nil, http.StatusGone)
	}
	if err := expect(a, &o, http.StatusOK); err != nil {
		return fmt.Errorf("%s: read: %w", f.label, err)
	}
	f.touched = true
	if o.Stderr != nil {
		f.errs = append(f.errs, piece{o.Stderr.Offset, o.Stderr.Text})
	}
	return p.took(f, o.output)
}

// acknowledge is a read that counts when its reader says so; sometimes it doesn't.
func (p *party) acknowledge(f *fact) error {
	a, err := p.call(p.c, http.MethodGet, fmt.Sprintf("/tasks/%s/output?limit_bytes=%d", f.id, 1+p.r.IntN(1000)), nil, "Afoot-Ack: explicit")
	if err != nil {
		return err
	}
	if f.gone {
		return expect(a, nil, http.StatusGone)
	}
	var o output
	if err := expect(a, &o, http.StatusOK); err != nil {
		return fmt.Errorf("%s: read to be acknowledged: %w", f.label, err)
	}
	f.touched = true
	if err := p.took(f, o); err != nil {
		return err
	}
	f.next = f.cursor
	if p.r.IntN(6) == 0 && !p.w.reloading {
		return nil // its notice is held until the daemon dies
	}
	f.may, f.next = true, o.NextOffset
	a, err = p.call(p.c, http.MethodPost, "/tasks/"+f.id+"/ack", fields{"nextOffset": o.NextOffset})
	if err != nil {
		return err
	}
	if err := expect(a, nil, http.StatusNoContent); err != nil {
		return fmt.Errorf("%s: ack: %w", f.label, err)
	}
	f.cursor = f.next
	if o.Snapshot.Reported {
		p.known(f)
	}
	return nil
}

func (p *party) kill(f *fact) error {
	if p.r.IntN(3) > 0 && f.end != nil {
		return nil
	}
	if !f.gone {
		f.asked = true
	}
	a, err := p.call(p.c, http.MethodDelete, "/tasks/"+f.id, nil)
	if err != nil {
		return err
	}
	if f.gone {
		return expect(a, nil, http.StatusGone)
	}
	var k killed
	if err := expect(a, &k, http.StatusOK, http.StatusAccepted); err != nil {
		return fmt.Errorf("%s: kill: %w", f.label, err)
	}
	f.touched = true
	f.killed = f.killed || k.Outcome == "requested"
	if !k.Snapshot.Reported {
		return fmt.Errorf("%s: a kill reports: %s", f.label, a)
	}
	p.known(f)
	return p.see(f, k.Snapshot)
}

func (p *party) get(f *fact) error {
	a, err := p.call(p.c, http.MethodGet, "/tasks/"+f.id, nil)
	if err != nil {
		return err
	}
	if f.gone {
		return expect(a, nil, http.StatusGone)
	}
	var s snapshot
	if err := expect(a, &s, http.StatusOK); err != nil {
		return fmt.Errorf("%s: get: %w", f.label, err)
	}
	return p.see(f, s)
}

// replay sends a start again that was answered, in this life or an earlier one.
func (p *party) replay(f *fact) error {
	if f.key == "" || f.gone || f.agent != nil && f.agent.may {
		return nil
	}
	a, err := p.call(p.acting(f.agent), http.MethodPost, "/tasks", f.body, "Idempotency-Key: "+f.key)
	if err != nil {
		return err
	}
	var s snapshot
	if err := expect(a, &s, http.StatusOK); err != nil {
		return fmt.Errorf("%s: a start is sent again: %w", f.label, err)
	}
	if s.ID != f.id || a.header.Get("Idempotency-Replayed") != "true" {
		return fmt.Errorf("the start of %s is answered by %s: %s", f.id, s.ID, a)
	}
	return p.see(f, s)
}

func (p *party) input(f *fact) error {
	if f.gone || !f.script.stdin {
		return nil
	}
	a, err := p.call(p.c, http.MethodPost, "/tasks/"+f.id+"/input", fields{"data": hexText(p.r.IntN(30)) + "\n"})
	if err != nil {
		return err
	}
	return expect(a, nil, http.StatusOK, http.StatusConflict)
}

func (p *party) purge(f *fact) error {
	if f.gone || f.end == nil {
		return nil
	}
	f.purging, f.touched = true, true
	a, err := p.call(p.c, http.MethodDelete, "/tasks/"+f.id+"?purge=true", nil)
	if err != nil {
		return err
	}
	f.gone = true
	return expect(a, nil, http.StatusNoContent)
}
