package inmem

import (
	"slices"
	"time"

	"afoot/registry"
)

// record is one task. Its fields are guarded by Service.mu; run and the streams
// of source never change and are called without it.
type record struct {
	snap facts
	seq  uint64
	// launch has what a live task alone needs; nil of one that has ended.
	launch *launch
	run    registry.Run
	// source is what is read; nil if that is the run itself, as one stream.
	source *source
	agent  *agent // nil: unowned

	// cursors are where the next consuming read begins.
	cursors cursors
	// queue are consuming reads that wait for their turn; nil when none does.
	queue   *queue
	handout *handout
	// mark is that of the newest row.
	mark registry.Mark
	// blocked counts all reads that wait, looks too.
	blocked int32
	// claims counts terminal states on their way to a caller.
	claims int32
	// cancelling counts calls of the producer's cancel under way: settlement waits
	// for their verdict, so that stopping always comes before it.
	cancelling int32
	// places are where the record stands in the heaps of ended ones, from one; zero
	// is out of them.
	places [2]int32
	// answering says that a consuming read has its turn.
	answering bool
	// acked says that an ack moved the main cursor to where it is: it may be repeated.
	acked bool
	// announced says that the one notice was given to the listeners.
	announced bool
	// removed says that the record is out of the registry.
	removed bool
	// due says that retention let it be because it was busy, and waits until it is idle.
	due bool
	// heard says that the listeners heard the notice. It is what the journal knows of
	// announced: who dies in between announces again, so the record stays until then.
	heard bool
	// telling says that the listeners have not heard yet that the end is reported: who has
	// its notice in hand asks for that, and must not be told that there is no such task.
	telling bool
}

// owner never changes.
func (r *record) owner() registry.Owner {
	if r.agent == nil {
		return registry.Owner{}
	}
	return r.agent.owner
}

// startLocked is where a consuming read begins: a final output is the same at
// each read.
func (r *record) startLocked() cursors {
	if r.streams()[stdout] == nil {
		return cursors{}
	}
	return r.cursors
}

func (r *record) live() bool { return !r.snap.status.terminal() }

// bucket counts what limits bound: live tasks, starts under way, and ended tasks.
type bucket struct {
	live, starting int
	ended          ended
	// quiet, when not nil, is closed as soon as no start is under way.
	quiet chan struct{}
}

func (b *bucket) full(limit int) bool { return b.live+b.starting >= limit }

// started takes one start back; the caller counts what came of it.
func (b *bucket) started() {
	b.starting--
	if b.starting == 0 && b.quiet != nil {
		close(b.quiet)
		b.quiet = nil
	}
}

// quietChan is closed when no start is under way. There is one waiter at most.
func (b *bucket) quietChan() <-chan struct{} {
	ch := make(chan struct{})
	if b.starting == 0 {
		close(ch)
	} else {
		b.quiet = ch
	}
	return ch
}

// session holds what belongs to one session, or to nobody.
type session struct {
	tasks   []*record // by seq
	agents  []*agent  // by seq, live ones
	standin *agent    // the default agent, nil until needed
}

func (s *Service) sessionLocked(name string) *session {
	got := s.sessions[name]
	if got == nil {
		got = &session{}
		s.sessions[name] = got
	}
	return got
}

func (s *Service) forgetSessionLocked(name string) {
	if got := s.sessions[name]; got != nil && len(got.tasks) == 0 && len(got.agents) == 0 {
		delete(s.sessions, name)
	}
}

// insertLocked puts a record with its seq, the highest so far, among the others.
func (s *Service) insertLocked(r *record) {
	s.records[r.snap.ID] = r
	owner := s.sessionLocked(r.owner().Session)
	owner.tasks = append(owner.tasks, r)
	s.countLocked(r.snap.kind(), r.snap.status.word(), 1)
}

// removeLocked takes one record out, and says what that was.
func (s *Service) removeLocked(r *record, as registry.ChangeType) {
	owner := s.sessionLocked(r.owner().Session)
	if i, ok := slices.BinarySearchFunc(owner.tasks, r.seq, bySeq); ok {
		owner.tasks = deleteAt(owner.tasks, i)
	}
	s.forgetSessionLocked(r.owner().Session)
	s.droppedLocked(r, as)
	s.goneLocked(r.seq, registry.TaskGone{ID: r.snap.ID})
}

// deleteAt moves the shorter side: the oldest of very many costs nothing.
func deleteAt(tasks []*record, i int) []*record {
	if i >= len(tasks)/2 {
		return slices.Delete(tasks, i, i+1)
	}
	copy(tasks[1:i+1], tasks[:i])
	tasks[0] = nil
	return tasks[1:]
}

// removeAllLocked takes an owner out with all its records, in one pass over its
// session. The journal forgets them together.
func (s *Service) removeAllLocked(a *agent, mine []*record) {
	owner := s.sessionLocked(a.owner.Session)
	owner.tasks = slices.DeleteFunc(owner.tasks, func(r *record) bool { return r.agent == a })
	newest, gone := uint64(0), make([]registry.Row, 0, len(mine)+1)
	for _, r := range mine {
		s.droppedLocked(r, registry.ChangeRemoved)
		newest, gone = max(newest, r.seq), append(gone, registry.TaskGone{ID: r.snap.ID})
	}
	if a.kept {
		a.kept = false
		newest, gone = max(newest, a.owner.Incarnation), append(gone, registry.AgentGone{Owner: a.owner})
	}
	s.goneLocked(newest, gone...)
	s.removeAgentLocked(a)
}

func (s *Service) droppedLocked(r *record, as registry.ChangeType) {
	r.removed = true
	if !r.live() {
		s.takeLocked(r)
		s.countEndedLocked(r, -1)
		delete(s.keep.lingering, r)
	}
	r.dissolveLocked()
	s.dropHandoutLocked(r)
	delete(s.records, r.snap.ID)
	s.countLocked(r.snap.kind(), r.snap.status.word(), -1)
	s.emitLocked(as, r)
}

func bySeq(r *record, seq uint64) int {
	switch {
	case r.seq < seq:
		return -1
	case r.seq > seq:
		return 1
	}
	return 0
}

func (s *Service) setStatusLocked(r *record, next registry.Snapshot) {
	if next.Status != r.snap.status.word() {
		s.countLocked(r.snap.kind(), r.snap.status.word(), -1)
		s.countLocked(next.Kind, next.Status, 1)
	}
	r.snap = factsOf(next)
}

func now() time.Time { return time.Now() }
