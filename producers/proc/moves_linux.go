package proc

import (
	"encoding/json"
	"errors"
	"os/signal"
	"sync"
)

// moves are what goes on, or went on, under another image of this process.
type moves struct {
	mu sync.Mutex
	// out are handed over, by key; in were, and nobody has asked for them yet.
	out, in map[uint64]*Process
}

// HandOver stops watching over a process, until [Process.TakeBack] or, after an exec
// in a host with the state of this one, [Host.Adopt] with the key. Nobody may be in one
// of its methods. A leader that exits meanwhile stays a zombie, and its status is there
// for who reaps it.
func (p *Process) HandOver() (key uint64) {
	p.host.exits.remove(p)
	m := &p.host.moves
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.out == nil {
		m.out = make(map[uint64]*Process)
	}
	m.out[p.tree.key] = p
	return p.tree.key
}

// TakeBack undoes HandOver.
func (p *Process) TakeBack() {
	m := &p.host.moves
	m.mu.Lock()
	delete(m.out, p.tree.key)
	m.mu.Unlock()
	if !p.reaped.Load() && !closed(p.exited) && !p.threaded {
		p.begin(p.pidfd)
	}
}

// HandOver is to a tree what [Process.HandOver] is to its process.
func (t *Tree) HandOver() (key uint64) { return t.process.HandOver() }

// TakeBack undoes HandOver.
func (t *Tree) TakeBack() { t.process.TakeBack() }

// HandOver gives what [Config.Adopt] needs to go on with this host and with all that
// was handed over before, in another image of this process. The descriptors that it
// names stay open across an exec. Nothing may be started until [Host.TakeBack].
func (h *Host) HandOver() (json.RawMessage, error) {
	h.moves.mu.Lock()
	defer h.moves.mu.Unlock()
	s := hostState{Net: h.nets.name, Reason: h.nets.reason, Since: h.since, Mark: string(h.mark), Roll: -1, Trees: h.trees.Load()}
	if h.roll.file != nil {
		s.Roll = int(h.roll.file.Fd())
	}
	if h.nets.reaper != nil {
		s.Undo = h.nets.reaper.undo
	}
	if c := h.nets.cgroups; c != nil {
		s.Groups = c.state()
	}
	if l := h.nets.lineage; l != nil {
		l.mu.Lock()
		s.Stamps, s.Numbers = l.stamps.host, l.numbers
		for _, a := range l.aside {
			s.Aside = append(s.Aside, asideState{stateOf(a.Member), a.stray})
		}
		l.mu.Unlock()
		s.Strays = h.roll.state(&l.listed)
	}
	for _, p := range h.moves.out {
		s.Process = append(s.Process, p.state())
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = s.inherit(true)
	}
	if err != nil {
		return nil, errors.Join(err, s.inherit(false))
	}
	h.clean.handOver()
	return data, nil
}

// TakeBack undoes HandOver, but for the processes.
func (h *Host) TakeBack() {
	h.moves.mu.Lock()
	defer h.moves.mu.Unlock()
	h.clean.takeBack()
	for _, p := range h.moves.out {
		s := p.state()
		_ = inherit(s.Handle, false)
	}
	if h.roll.file != nil {
		_ = inherit(int(h.roll.file.Fd()), false)
	}
	if c := h.nets.cgroups; c != nil {
		_ = inherit(int(c.lock.Fd()), false)
		c.resume()
	}
}

// handOver leaves the signals that this program had inherited as ignored as it found
// them: exec gives the default to those that are handled.
func (h *hygiene) handOver() {
	if len(h.ignored) > 0 {
		signal.Ignore(h.ignored...)
	}
}

func (h *hygiene) takeBack() {
	if len(h.ignored) > 0 {
		signal.Notify(h.handled, h.ignored...)
	}
}
