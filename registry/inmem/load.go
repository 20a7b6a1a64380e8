package inmem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"afoot/registry"
)

// Load brings back what the journal kept; without one it does nothing. It is called
// once, when the producers that gave the kept work and the listeners are attached, and
// before the first call of a verb.
//
// Work that was live goes on if [Config.Adopt] has it. Other such work has failed with
// [registry.DetailLost], which the listeners hear.
// So they do of each end whose notice they may not have heard yet: one who heard it
// just before the daemon died hears it again, and knows it by the task's id. Leases
// begin anew; bounds of retention hold at once, and the ends of owners go on.
func (s *Service) Load(ctx context.Context) error {
	if s.cfg.Journal == nil {
		return nil
	}
	s.mu.Lock()
	err := s.openLocked()
	s.mu.Unlock()
	switch {
	case err == nil:
		return errors.New("the service is loaded already")
	case s.isShut():
		return err
	}
	memory, err := s.cfg.Journal.Load(ctx)
	if err != nil {
		return err
	}
	var from moved
	if s.cfg.Adopt != nil {
		if err := json.Unmarshal(s.cfg.Adopt, &from); err != nil {
			return fmt.Errorf("adopt the tasks: %w", err)
		}
	}
	back := make([]*record, 0, len(memory.Tasks))
	for i := range memory.Tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := &memory.Tasks[i]
		back = append(back, s.restore(row, from.Runs[row.Snapshot.ID]))
	}
	s.mu.Lock()
	s.countersBackLocked(&memory)
	s.agentsBackLocked(memory.Agents)
	for i, r := range back {
		s.taskBackLocked(r, memory.Tasks[i].Snapshot.Owner)
		s.givenBackLocked(r, from.Given)
	}
	s.keysBackLocked(memory.Keys)
	s.successionLocked()
	s.loading = false
	s.mu.Unlock()
	s.arrive(back)
	s.dispatch()
	return nil
}

// restore makes the record of a row, with what is left of its run, or with the run
// itself if it was handed over.
func (s *Service) restore(row *registry.TaskRow, live json.RawMessage) *record {
	r := &record{
		snap: factsOf(row.Snapshot), seq: row.Seq,
		cursors: cursors{row.Cursor, row.StderrCursor}, announced: row.Announced, heard: row.Announced,
	}
	if live != nil && r.live() {
		if r.run, r.launch = s.adopt(row, live); r.run != nil {
			r.source = s.sourceOf(r.run)
			return r
		}
	}
	if r.run = s.restoreRun(row); r.run == nil {
		r.run = lost{}
		if row.Output == "" {
			r.run = lostStream{remnant: &remnant{told: max(row.Snapshot.OutputBytes, row.Cursor)}}
		}
	}
	r.source = s.sourceOf(r.run)
	if r.streams()[stdout] == nil {
		r.source.final = row.Output
		return r
	}
	s.contain("stream", func() { r.mend() })
	return r
}

// restoreRun gives nil when nothing of the run is left.
func (s *Service) restoreRun(row *registry.TaskRow) (run registry.Run) {
	if len(row.Handle) == 0 {
		return nil
	}
	restorer, may := s.producerOf(row).(registry.Restorer)
	if !may {
		return nil
	}
	s.contain("restore", func() {
		var err error
		if run, err = restorer.Restore(row.Handle); err != nil {
			run = nil
			s.cfg.Logger.Warn("output is lost", "task", row.Snapshot.ID, "error", err)
		}
	})
	return run
}

// producerOf gives nil when nobody makes work of that kind.
func (s *Service) producerOf(row *registry.TaskRow) registry.Producer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.plugs.producers[row.Snapshot.Kind]; p != nil {
		return p.Producer
	}
	return nil
}

// countersBackLocked goes on where the numbers ended.
func (s *Service) countersBackLocked(m *registry.Memory) {
	shown := func(kind registry.Kind, n uint64) {
		if s.numbers[kind] == nil {
			s.numbers[kind] = newNumbers()
		}
		known := s.numbers[kind]
		known.shown = max(known.shown, n)
		known.last = known.shown
	}
	for _, c := range m.Counters {
		switch c.Kind {
		case orderKind:
			s.seq = max(s.seq, c.Last)
		case agentKind:
			s.opened = max(s.opened, c.Last)
		default:
			shown(c.Kind, c.Last)
		}
	}
	for i := range m.Tasks {
		s.seq = max(s.seq, m.Tasks[i].Seq)
		if kind, n, ok := m.Tasks[i].Snapshot.ID.Parse(); ok {
			shown(kind, n)
		}
	}
	for _, a := range m.Agents {
		s.seq = max(s.seq, a.Seq, a.Owner.Incarnation)
		if kind, n, ok := registry.ID(a.Owner.Agent).Parse(); ok && kind == agentKind {
			s.opened = max(s.opened, n)
		}
	}
	s.rows.seq = s.seq
}

func (s *Service) agentsBackLocked(rows []registry.AgentRow) {
	for _, row := range rows {
		a := s.agentBackLocked(row.Owner)
		a.label, a.lease, a.kept = row.Label, row.Lease, true
		switch {
		case row.Ending: // before its tasks are back: no end of them is due
			s.disposeLocked(a, "agent disposed")
		case a.lease > 0:
			s.leaseLocked(a)
		}
	}
}

// agentBackLocked makes an agent that was there before; the newest default one of a
// session is the one that the session acts as.
func (s *Service) agentBackLocked(owner registry.Owner) *agent {
	a := &agent{owner: owner, used: true, disposed: make(chan struct{})}
	mine := s.sessionLocked(owner.Session)
	mine.agents = append(mine.agents, a)
	if owner.Agent == registry.DefaultAgent {
		mine.standin = a
	} else {
		s.agents[owner.Agent] = a
	}
	return a
}

// taskBackLocked puts a record back. What was live and is not gone on with is settled now.
func (s *Service) taskBackLocked(r *record, owner registry.Owner) {
	if !owner.Unowned() {
		r.agent = s.ownerBackLocked(owner)
	}
	if r.launch != nil {
		s.goOnLocked(r)
		return
	}
	was := r.live()
	if was {
		at := max(momentOf(now()), r.snap.startedAt) // the clock may have gone back
		r.snap.Foreground = false                    // the call that waited ended without an answer
		settled, _ := r.snapshotLocked().Settled(registry.Outcome{Status: registry.StatusFailed, Detail: registry.DetailLost}, at.time())
		r.snap = factsOf(settled)
	}
	// An ack whose answer was lost may come again. What it would not have reported it
	// does not report now.
	if r.cursors[stdout] > 0 && (was || r.snap.Reported) {
		r.acked = true
	}
	s.insertLocked(r)
	s.endedLocked(r)
	if was {
		s.keepLocked(r)
		s.emitLocked(registry.ChangeSettled, r)
	}
	s.announceLocked(r)
}

// ownerBackLocked finds the owner of a task. One that is missing in a repaired journal
// is made again.
func (s *Service) ownerBackLocked(owner registry.Owner) *agent {
	if mine := s.sessions[owner.Session]; mine != nil {
		for _, a := range mine.agents {
			if a.owner == owner {
				return a
			}
		}
	}
	a := s.agentBackLocked(owner)
	s.keepAgentLocked(a)
	return a
}

// successionLocked goes on with the disposal of default agents that have a successor.
func (s *Service) successionLocked() {
	for _, mine := range s.sessions {
		for _, a := range mine.agents {
			if a.owner.Agent == registry.DefaultAgent && a != mine.standin {
				s.disposeLocked(a, "agent disposed")
			}
		}
	}
}

func (s *Service) keysBackLocked(rows []registry.KeyRow) {
	done := make(chan struct{})
	close(done)
	for _, row := range rows {
		name := keyName{session: row.Session, subject: row.Subject, key: row.Key}
		s.keys.byName[name] = &keyed{fingerprint: row.Fingerprint, done: done, id: row.ID, at: row.At}
		s.keys.order = append(s.keys.order, name)
	}
	s.expireKeysLocked()
}

// lost is a run of which nothing is left but what the record says.
type lost struct{}

func (lost) Cancel(string) error               { return registry.ErrEnded }
func (lost) Request() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
func (lost) Discard() error                    { return nil }

// lostStream is a lost run that had output to read by offset.
type lostStream struct {
	lost
	*remnant
}

// closedChan is what waits for growth of an ended output get.
func closedChan() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}
