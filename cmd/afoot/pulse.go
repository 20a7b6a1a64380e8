package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Times of the pulse.
const (
	pulseSilence = time.Second
	pulseTick    = 250 * time.Millisecond
)

// pulse shows a waiting person that something happens: one line on standard
// error with a spinner and the time that passed, once nothing arrived for a
// second, gone again before anything else is printed. Where standard error is no
// terminal it does nothing.
type pulse struct {
	out   io.Writer
	label string
	begin time.Time
	quit  chan struct{}
	ended chan struct{}
	once  sync.Once

	mu      sync.Mutex
	last    time.Time
	frame   int
	drawn   bool
	midLine bool // the last byte printed to the terminal was no newline
}

// newPulse begins to watch. Close ends it; on a nil pulse every method works.
func newPulse(out io.Writer, label string) *pulse {
	if !isTerminal(out) {
		return nil
	}
	now := time.Now()
	p := &pulse{out: out, label: label, begin: now, last: now, quit: make(chan struct{}), ended: make(chan struct{})}
	go p.beat()
	return p
}

func (p *pulse) beat() {
	defer close(p.ended)
	tick := time.NewTicker(pulseTick)
	defer tick.Stop()
	for {
		select {
		case <-p.quit:
			return
		case now := <-tick.C:
			p.draw(now)
		}
	}
}

func (p *pulse) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.midLine || now.Sub(p.last) < pulseSilence {
		return
	}
	p.frame++
	p.drawn = true
	fmt.Fprintf(p.out, "\r\x1b[K%c %s, %s", `|/-\`[p.frame%4], p.label, now.Sub(p.begin).Round(time.Second))
}

// aside runs write with the line out of its way. Text is what write prints, to
// know whether the cursor then stands behind a line that must not be overwritten.
func (p *pulse) aside(text []byte, write func() error) error {
	if p == nil {
		return write()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
	p.last = time.Now()
	if len(text) > 0 {
		p.midLine = text[len(text)-1] != '\n'
	}
	return write()
}

func (p *pulse) clearLocked() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// Close takes the line away and returns when nothing more will be drawn. It is
// idempotent.
func (p *pulse) Close() {
	if p == nil {
		return
	}
	p.once.Do(func() { close(p.quit) })
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}
