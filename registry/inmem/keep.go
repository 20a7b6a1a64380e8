package inmem

import (
	"context"
	"encoding/json"
	"errors"

	"afoot/registry"
)

// rows is what a Service knows of its journal. Guarded by Service.mu.
type rows struct {
	// mark is that of the newest row, removals that of the newest that removed something or
	// said that an owner is ending.
	mark, removals registry.Mark
	// seq is the highest one in any row.
	seq uint64
}

// orderKind is the name of the counter that goes beyond the seq of all that is kept.
const orderKind registry.Kind = ""

// appendLocked puts rows in line; what is known under the mutex is written in that
// order. It costs nothing without a journal.
func (s *Service) appendLocked(rows ...registry.Row) {
	if s.cfg.Journal != nil && len(rows) > 0 {
		s.rows.mark = s.cfg.Journal.Append(rows...)
	}
}

// keepLocked writes a record as it is now. It is called at each change of what must
// outlive this process, before anybody is told.
func (s *Service) keepLocked(r *record) {
	if s.cfg.Journal == nil || r.removed {
		return
	}
	s.appendLocked(r.rowLocked())
	r.mark = s.rows.mark
}

// keepNewLocked writes a record for the first time, and with it, all or nothing, what
// came with it: its owner, its number, its key.
func (s *Service) keepNewLocked(r *record, rises bool, key *registry.KeyRow) {
	if s.cfg.Journal == nil {
		return
	}
	all := make([]registry.Row, 0, 4)
	if a := r.agent; a != nil && !a.kept {
		all = append(all, a.rowLocked())
	}
	if kind, n, _ := r.snap.ID.Parse(); rises {
		all = append(all, registry.CounterRow{Kind: kind, Last: n})
	}
	all = append(all, r.rowLocked())
	if key != nil {
		key.ID, key.At = r.snap.ID, r.snap.startedAt.time()
		all = append(all, *key)
	}
	s.appendLocked(all...)
	r.mark = s.rows.mark
	s.rows.seq = max(s.rows.seq, r.seq)
	if a := r.agent; a != nil && !a.kept {
		s.agentKeptLocked(a)
	}
}

func (s *Service) keepAgentLocked(a *agent, with ...registry.Row) {
	if s.cfg.Journal == nil {
		return
	}
	s.appendLocked(append(with, a.rowLocked())...)
	s.agentKeptLocked(a)
}

func (s *Service) agentKeptLocked(a *agent) {
	a.kept, a.mark = true, s.rows.mark
	s.rows.seq = max(s.rows.seq, a.owner.Incarnation)
}

// keepEndingLocked writes that an owner's end has begun: who was told so will not see it
// again, for a successor goes on with that.
func (s *Service) keepEndingLocked(a *agent) {
	if a.kept {
		s.appendLocked(a.rowLocked())
		s.rows.removals = s.rows.mark
	}
}

// goneLocked writes removals, the newest of which had that seq. No later task or agent
// gets a seq that is gone.
func (s *Service) goneLocked(seq uint64, gone ...registry.Row) {
	if s.cfg.Journal == nil || len(gone) == 0 {
		return
	}
	if seq >= s.rows.seq {
		gone = append(gone, registry.CounterRow{Kind: orderKind, Last: seq})
	}
	s.appendLocked(gone...)
	s.rows.removals = s.rows.mark
}

// rowLocked gives the record as it is now, to be appended. A handle goes with it, and
// is the journal's from then on.
func (r *record) rowLocked() registry.TaskRow {
	row := registry.TaskRow{
		Seq: r.seq, Snapshot: r.snapshotLocked(), Cursor: r.cursors[stdout], StderrCursor: r.cursors[stderr],
		Announced: r.heard, Output: r.outputLocked(),
	}
	if r.streams()[stdout] == nil {
		row.Snapshot.OutputBytes = int64(len(r.outputLocked()))
	}
	if l := r.launch; l != nil {
		row.Handle, l.handle = l.handle, nil
	}
	return row
}

func (a *agent) rowLocked() registry.AgentRow {
	return registry.AgentRow{Seq: a.owner.Incarnation, Owner: a.owner, Label: a.label, Lease: a.lease, Ending: a.disposing}
}

// toldLocked remembers sizes that somebody was told: the next row has them.
func (r *record) toldLocked(told registry.Snapshot) {
	r.snap.OutputBytes = max(r.snap.OutputBytes, told.OutputBytes)
	r.snap.DroppedBytes = max(r.snap.DroppedBytes, told.DroppedBytes)
}

// heardLocked keeps which notices of a batch were heard, and lets those go of which it was
// heard that they are reported. It comes after the listeners
// kept them: who knows the end only from here would lose it. From now on the records
// may go.
func (s *Service) heardLocked(batch []event) {
	for i := range batch {
		r := batch[i].rec
		switch {
		case r == nil || r.removed:
			continue
		case !batch[i].notice:
			r.telling = false
		default:
			r.heard = true
			if s.cfg.Journal != nil {
				s.appendLocked(r.rowLocked()) // no caller is told of it, so none waits for it
			}
		}
		s.idleLocked(r)
	}
}

// written waits, without the mutex, for what an answer depends on. Where it can't be
// written the answer is given all the same: memory is the truth, and the rows stay in
// line.
func (s *Service) written(ctx context.Context, mark registry.Mark) {
	if s.cfg.Journal != nil {
		_ = s.cfg.Journal.Sync(ctx, mark)
	}
}

// refused is written for a refusal: who is told that something is gone will not see
// it again.
func (s *Service) refused(ctx context.Context, err error) error {
	if s.cfg.Journal != nil && registry.CodeOf(err) == registry.CodeGone {
		s.mu.Lock()
		mark := s.rows.removals
		s.mu.Unlock()
		s.written(ctx, mark)
	}
	return err
}

// sync waits for what may not be shown before it is written.
func (s *Service) sync(ctx context.Context, mark registry.Mark) error {
	if s.cfg.Journal == nil {
		return nil
	}
	return unwritten(s.cfg.Journal.Sync(ctx, mark))
}

// writable refuses what would have to be written and can't be.
func (s *Service) writable() error {
	if s.cfg.Journal == nil {
		return nil
	}
	return unwritten(s.cfg.Journal.Check())
}

func unwritten(err error) error {
	var known *registry.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return registry.Wrap(registry.CodeInsufficientStorage, err, "the journal can't be written: %v", err)
}

// lockWritten locks the mutex at a moment when all rows are written, or can't be.
func (s *Service) lockWritten() {
	s.mu.Lock()
	for done := registry.Mark(0); s.rows.mark != done; {
		done = s.rows.mark
		s.mu.Unlock()
		s.written(context.Background(), done)
		s.mu.Lock()
	}
}

// lockAsked locks the mutex with the handle of a new run that belongs to what is known
// of its end.
func (s *Service) lockAsked(l *launch, r *record) {
	s.mu.Lock()
	for s.cfg.Journal != nil {
		ended := l.outcome != nil
		s.mu.Unlock()
		handle, told := s.askRun(r)
		s.mu.Lock()
		if ended == (l.outcome != nil) {
			l.handle = handle
			r.toldLocked(told)
			return
		}
	}
}

// askLastLocked asks a run that has ended for what is kept of it, without the mutex;
// nothing settles meanwhile.
func (s *Service) askLastLocked(l *launch) {
	r := l.rec
	if s.cfg.Journal == nil || r == nil {
		return
	}
	l.asking = true
	s.mu.Unlock()
	handle, told := s.askRun(r)
	s.mu.Lock()
	l.asking = false
	if handle != nil {
		l.handle = handle
	}
	r.toldLocked(told)
	if r.launch == nil { // its record was failed by force before
		r.launch = l
		s.keepLocked(r)
		r.launch = nil
	}
}

// askRun asks a run for its handle and sizes. One that fails keeps nothing.
func (s *Service) askRun(r *record) (handle json.RawMessage, told registry.Snapshot) {
	if kept, may := r.run.(registry.Kept); may {
		s.contain("handle", func() {
			var err error
			if handle, err = kept.Handle(); err != nil {
				handle = nil
				s.cfg.Logger.Warn("output will not outlive the daemon", "task", r.snap.ID, "error", err)
			}
		})
	}
	s.contain("stream", func() { told = view{streams: r.streams()}.fill() })
	return handle, told
}
