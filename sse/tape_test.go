package sse_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"afoot/sse"
)

// tape is the reference journal: calls in a line, written in order when the test
// says so. What is not written is lost in a crash.
type tape struct {
	// writing makes one batch, with its callbacks, be over before the next.
	writing sync.Mutex

	mu    sync.Mutex
	kept  reel
	line  []call
	epoch string
	// auto writes each call at once, from another goroutine.
	auto bool
	dead bool
	// loadErr is what Load answers.
	loadErr error
}

// reel is what is written.
type reel struct {
	rows  map[noticeID]sse.NoticeRow
	marks map[string]sse.SessionMark
	epoch string
	// facts are for the test: what an authority keeps in the same order.
	facts map[string]bool
}

type noticeID struct {
	session string
	number  uint64
}

type call struct {
	write func(*reel)
	// then is called if the notice of the id is still there, or always.
	id     noticeID
	always bool
	then   func()
}

func newTape(auto bool) *tape {
	return &tape{auto: auto, kept: reel{
		rows:  make(map[noticeID]sse.NoticeRow),
		marks: make(map[string]sse.SessionMark),
		facts: make(map[string]bool),
	}}
}

func (p *tape) put(c call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return
	}
	p.line = append(p.line, c)
	if p.auto {
		go p.write(-1)
	}
}

// write writes that many calls, or with a negative number all.
func (p *tape) write(n int) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	if n < 0 || n > len(p.line) {
		n = len(p.line)
	}
	batch := p.line[:n:n]
	p.line = p.line[n:]
	for _, c := range batch {
		c.write(&p.kept)
	}
	batch = slices.DeleteFunc(slices.Clone(batch), func(c call) bool {
		_, there := p.kept.rows[c.id]
		return !there && !c.always || c.then == nil
	})
	p.mu.Unlock()
	for _, c := range batch {
		c.then()
	}
}

func (p *tape) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.line)
}

// crash gives the tape as the next life finds it; this one takes nothing more.
func (p *tape) crash() *tape {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead, p.line = true, nil
	next := &tape{auto: p.auto, epoch: p.kept.epoch, kept: p.kept}
	next.kept.rows, next.kept.facts = maps.Clone(p.kept.rows), maps.Clone(p.kept.facts)
	next.kept.marks = make(map[string]sse.SessionMark, len(p.kept.marks))
	for id, m := range p.kept.marks {
		m.Lost = maps.Clone(m.Lost)
		next.kept.marks[id] = m
	}
	return next
}

// state gives a copy of what is written.
func (p *tape) state() (rows []sse.NoticeRow, marks map[string]sse.SessionMark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows = slices.SortedFunc(maps.Values(p.kept.rows), func(a, b sse.NoticeRow) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Number, b.Number))
	})
	return rows, maps.Clone(p.kept.marks)
}

// fact keeps something of the test, in line.
func (p *tape) fact(name string) { p.put(call{write: func(r *reel) { r.facts[name] = true }}) }

func (p *tape) is(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept.facts[name]
}

func (p *tape) Load(context.Context) (rows []sse.NoticeRow, marks []sse.SessionMark, err error) {
	rows, all := p.state()
	for _, m := range all {
		m.Lost = maps.Clone(m.Lost)
		marks = append(marks, m)
	}
	return rows, marks, p.loadErr
}

func (p *tape) Epoch() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

func (p *tape) SetEpoch(epoch string) {
	p.mu.Lock()
	p.epoch = epoch
	p.mu.Unlock()
	p.put(call{write: func(r *reel) { r.epoch = epoch }})
}

func (r *reel) mark(session string, change func(*sse.SessionMark)) {
	m := r.marks[session]
	m.Session = session
	change(&m)
	r.marks[session] = m
}

func (p *tape) Move(session string, old []uint64, number uint64, row sse.NoticeRow, then func()) {
	id := noticeID{session, number}
	p.put(call{id: id, then: then, write: func(r *reel) {
		for _, o := range old {
			delete(r.rows, noticeID{session, o})
		}
		r.rows[id] = row
		r.mark(session, func(m *sse.SessionMark) { m.Last = max(m.Last, number) })
	}})
}

func (p *tape) Written(session string, number uint64, at time.Time) {
	p.put(call{write: func(r *reel) {
		if row, found := r.rows[noticeID{session, number}]; found {
			row.Written = at
			r.rows[noticeID{session, number}] = row
		}
	}})
}

func (p *tape) Held(session string, number uint64, then func()) {
	id := noticeID{session, number}
	p.put(call{id: id, then: then, write: func(r *reel) {
		if row, found := r.rows[id]; found {
			row.Held = true
			r.rows[id] = row
		}
	}})
}

func (p *tape) Gone(session string, numbers []uint64, then func()) {
	p.put(call{always: true, then: then, write: func(r *reel) {
		for _, n := range numbers {
			delete(r.rows, noticeID{session, n})
		}
	}})
}

func (p *tape) Mark(session string, last, evicted uint64) {
	p.put(call{write: func(r *reel) {
		r.mark(session, func(m *sse.SessionMark) { m.Last, m.Evicted = max(m.Last, last), max(m.Evicted, evicted) })
	}})
}

func (p *tape) Lost(session, owner, agent string) {
	p.put(call{write: func(r *reel) {
		r.mark(session, func(m *sse.SessionMark) {
			if m.Lost == nil {
				m.Lost = make(map[string]string)
			}
			m.Lost[owner] = agent
		})
	}})
}

func (p *tape) Told(session string, owners ...string) {
	p.put(call{write: func(r *reel) {
		r.mark(session, func(m *sse.SessionMark) {
			for _, o := range owners {
				delete(m.Lost, o)
			}
		})
	}})
}

func (p *tape) Forget(sessions ...string) {
	p.put(call{write: func(r *reel) {
		for _, s := range sessions {
			delete(r.marks, s)
		}
	}})
}
