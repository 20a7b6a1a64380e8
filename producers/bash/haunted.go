package bash

import (
	"maps"
	"slices"
	"time"

	"afoot/producers/proc"
)

// visitPause is how often those who left processes are looked at.
const visitPause = time.Second

// visitLocked has those who left processes looked at in a while, so that what is kept
// for leftovers that end by themselves is given back though nobody asks.
func (p *Producer) visitLocked() {
	if p.visits == nil && len(p.haunted) > 0 && !p.held && !p.closed {
		p.visits = time.AfterFunc(visitPause, p.visit)
	}
}

func (p *Producer) visit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visits = nil
	if p.held || p.closed {
		return
	}
	p.stops.Go(func() {
		p.visitAll()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.visitLocked()
	})
}

func (p *Producer) stopVisitsLocked() {
	if p.visits != nil {
		p.visits.Stop()
		p.visits = nil
	}
}

// visitAll ends the haunting of those of whom nobody is left.
func (p *Producer) visitAll() {
	p.mu.Lock()
	haunted := maps.Clone(p.haunted)
	for _, r := range p.adopted {
		delete(haunted, r) // what it has goes to another one
	}
	p.mu.Unlock()
	runs := make([]*run, 0, len(haunted))
	trees := make([]*proc.Tree, 0, len(haunted))
	for r := range haunted {
		r.mu.Lock()
		if g := r.ghosts; g != nil && !g.stopping {
			runs, trees = append(runs, r), append(trees, g.tree)
		}
		r.mu.Unlock()
	}
	for i, empty := range p.host.Empty(trees) {
		if empty {
			runs[i].exorcise()
		}
	}
}

// Haunted counts the ended commands of which processes still live. It looks at the
// processes of each that left some.
func (p *Producer) Haunted() int {
	living := 0
	for _, r := range p.hauntedRuns() {
		if r.Left() {
			living++
		}
	}
	return living
}

func (p *Producer) hauntedRuns() []*run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.haunted))
}
