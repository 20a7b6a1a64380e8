package bash

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"afoot/producers/proc"
)

// producerState is what runs share, as it passes an exec.
type producerState struct {
	Host   json.RawMessage `json:"host"`
	Ghosts []ghostState    `json:"ghosts,omitempty"`
}

type ghostState struct {
	Name     string         `json:"name"`
	Tree     uint64         `json:"tree"`
	Stopping bool           `json:"stopping,omitempty"`
	Told     syscall.Signal `json:"told,omitempty"`
	Since    int64          `json:"since,omitempty"`
}

// HandOver gives what [Config.Adopt] needs, besides the handles of the live runs, which
// are handed over before, and of the ended ones, which are restored. Nothing can be
// started until [Producer.TakeBack]. The sink has to be handed over by itself.
func (p *Producer) HandOver() (json.RawMessage, error) {
	p.mu.Lock()
	if p.held || p.closed {
		p.mu.Unlock()
		return nil, errors.New("hand the commands over: they were, or it is closed")
	}
	p.held = true
	p.stopVisitsLocked()
	close(p.hold)
	p.mu.Unlock()
	p.stops.Wait()
	var s producerState
	for _, r := range p.hauntedRuns() {
		r.mu.Lock()
		if g := r.ghosts; g != nil {
			s.Ghosts = append(s.Ghosts, ghostState{
				Name: g.name, Tree: g.tree.HandOver(), Stopping: g.stopping,
				Told: g.escalation.Told, Since: proc.Clock(g.escalation.Since),
			})
		}
		r.mu.Unlock()
	}
	var err error
	if s.Host, err = p.host.HandOver(); err != nil {
		p.TakeBack()
		return nil, fmt.Errorf("hand the commands over: %w", err)
	}
	return json.Marshal(s)
}

// TakeBack undoes HandOver.
func (p *Producer) TakeBack() {
	p.mu.Lock()
	if !p.held {
		p.mu.Unlock()
		return
	}
	p.held, p.hold = false, make(chan struct{})
	p.mu.Unlock()
	p.host.TakeBack()
	for _, r := range p.hauntedRuns() {
		r.mu.Lock()
		if g := r.ghosts; g != nil {
			g.tree.TakeBack()
			if g.stopping {
				r.goExorciseLocked(g)
			}
		}
		r.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visitLocked()
}

// stop begins a stop of leftovers, unless the producer is handed over: then it begins
// when that is taken back.
func (p *Producer) stop(work func(hold <-chan struct{})) (begun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hold := p.hold
	if !p.held {
		p.stops.Go(func() { work(hold) })
	}
	return !p.held
}

// look does what looks at leftovers, unless the producer is handed over: what was handed
// over stays as it was then.
func (p *Producer) look(work func()) {
	p.mu.Lock()
	held, closed := p.held, p.closed
	if !held && !closed {
		p.stops.Add(1)
		defer p.stops.Done()
	}
	p.mu.Unlock()
	if !held {
		work()
	}
}

// openHost makes the host, or goes on with one, and with the leftovers on it.
func (p *Producer) openHost(config *Config) error {
	var s producerState
	if config.Adopt != nil {
		if err := json.Unmarshal(config.Adopt, &s); err != nil {
			return fmt.Errorf("adopt the commands: %w", err)
		}
	}
	var err error
	p.host, err = proc.NewHost(proc.Config{Logger: p.logger, Net: config.Net, RunAs: config.RunAs, Adopt: s.Host})
	if err != nil {
		return err
	}
	p.closeHost = sync.OnceValue(p.host.Close)
	p.adopted = make(map[string]*run, len(s.Ghosts))
	for _, ghost := range s.Ghosts {
		tree, err := p.host.AdoptTree(ghost.Tree)
		if err != nil {
			return errors.Join(fmt.Errorf("adopt the commands: %w", err), p.closeHost())
		}
		r := &run{producer: p, ghosts: &ghosts{
			tree: tree, name: ghost.Name, gone: make(chan struct{}),
			resume: ghost.Stopping, escalation: proc.Escalation{Told: ghost.Told, Since: proc.Moment(ghost.Since)},
		}}
		p.adopted[ghost.Name] = r
		p.haunted[r] = struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visitLocked()
	return nil
}

// EndUnclaimed stops the leftovers of runs that nobody has restored: their tasks were
// removed in the moment of the exec. It comes when all runs are back.
func (p *Producer) EndUnclaimed() {
	p.mu.Lock()
	unclaimed := p.adopted
	p.adopted = nil
	p.mu.Unlock()
	for _, r := range unclaimed {
		r.mu.Lock()
		if g := r.ghosts; g != nil {
			r.exorciseLocked(g)
		}
		r.mu.Unlock()
	}
}

// reclaim gives a restored run what it had left, if that is still there.
func (p *Producer) reclaim(r *run, name string) {
	p.mu.Lock()
	was := p.adopted[name]
	if was != nil {
		delete(p.adopted, name)
		delete(p.haunted, was)
		p.haunted[r] = struct{}{}
	}
	p.mu.Unlock()
	if was == nil {
		return
	}
	was.mu.Lock()
	g := was.ghosts
	was.ghosts = nil
	was.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ghosts = g
	if g != nil && g.resume {
		r.exorciseLocked(g)
	}
}
