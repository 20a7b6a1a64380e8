package sse

import (
	"context"
	"time"
)

// Journal keeps notice logs beyond the end of the process. Its methods are safe
// for concurrent use. But for Load none blocks, touches the disk or calls back
// before it returns, so that it may be called with a lock held; what is kept in
// the end is always the state after some whole call, in the order of the calls.
type Journal interface {
	// Load gives all notices, by session and number, and what is known of the
	// sessions beyond them. It is called once, before all else.
	Load(ctx context.Context) (rows []NoticeRow, marks []SessionMark, err error)
	// Epoch gives what SetEpoch has set, in this life or an earlier one.
	Epoch() string
	SetEpoch(epoch string)
	// Move adds a notice under its number, raises the session's last number to it,
	// and removes the notices of the old numbers. Then is called once the notice is
	// kept, in the order of the moves, and must not block. It may never be called for
	// a notice that was removed before.
	Move(session string, old []uint64, number uint64, row NoticeRow, then func())
	// Written records when a delivering stream first carried a notice.
	Written(session string, number uint64, at time.Time)
	// Held records that a pending notice is not carried until it is moved. Then is called
	// once that is kept, and must not block; it may never be called for a notice that was
	// removed before.
	Held(session string, number uint64, then func())
	// Gone removes notices; one that is not there is no error. Then, unless nil, is called
	// once that is kept, in any case, and must not block.
	Gone(session string, numbers []uint64, then func())
	// Mark raises a session's numbers; a lower one than is known changes nothing.
	Mark(session string, last, evicted uint64)
	// Lost records that pending notices of an owner were given up, and Told that
	// somebody heard of it, or that nobody is to hear of it any more.
	Lost(session, owner, agent string)
	Told(session string, owners ...string)
	// Forget removes the marks of sessions.
	Forget(sessions ...string)
}

// NoticeRow is a notice as a journal keeps it. It is a plain type, as is
// [SessionMark], so that a journal need not know this package.
type NoticeRow = struct {
	Session string
	Number  uint64
	// Key, Owner, Agent, Event and Data are those of the [Notice].
	Key, Owner, Agent, Event string
	Data                     []byte
	// Written is when a delivering stream first carried it; zero while it is pending.
	Written time.Time
	// Held says that it was held back when it was kept; of no meaning once it was written.
	Held bool
}

// SessionMark is what a journal knows of a session beyond its notices.
type SessionMark = struct {
	Session string
	// Last is the newest number given, Evicted the highest one given up.
	Last, Evicted uint64
	// Lost has the owners whose pending notices were given up, with their agents,
	// until somebody was told.
	Lost map[string]string
}

// put hands a new entry to the journal, in place of older ones. Until it is kept
// no stream carries it: the number could be given to another notice.
func (l *noticeLog) put(e *entry, old []uint64) {
	j := l.journal
	if j == nil {
		l.ready = e.number
		return
	}
	if l.unmarked {
		l.unmarked = false
		j.Mark(l.session, l.last, l.evicted)
	}
	session, number, kept, call := l.session, e.number, l.kept, l.calls.Add(1)
	n := e.notice
	j.Move(session, old, number, NoticeRow{
		Session: session, Number: number,
		Key: n.Key, Owner: n.Owner, Agent: n.Agent, Event: n.Event, Data: n.Data,
	}, func() { kept(session, number, call) })
}

// has gives the number under which a journal keeps a notice of the key. Without
// a key each notice is its own.
func (l *noticeLog) has(key string) (number uint64, found bool) {
	if l.journal == nil || key == "" {
		return 0, false
	}
	for _, e := range l.entries {
		if e.notice.Key == key {
			return e.number, true
		}
	}
	return 0, false
}

// erase makes the journal forget entries that are no more, and streams wait for that.
func (l *noticeLog) erase(entries []*entry) {
	if !l.leave(entries) {
		l.gone(entries, nil)
		return
	}
	session, forgotten, call := l.session, l.forgotten, l.calls.Add(1)
	l.gone(entries, func() { forgotten(session, call) })
}

func (l *noticeLog) gone(entries []*entry, then func()) {
	if l.journal == nil || len(entries) == 0 {
		return
	}
	numbers := make([]uint64, len(entries))
	for i, e := range entries {
		numbers[i] = e.number
	}
	l.journal.Gone(l.session, numbers, then)
}

// restore takes an entry over from the journal. They come in order.
func (l *noticeLog) restore(row NoticeRow) {
	e := &entry{number: row.Number, flown: true, notice: Notice{
		Key: row.Key, Owner: row.Owner, Agent: row.Agent, Event: row.Event, Data: row.Data,
	}.normal()}
	if !row.Written.IsZero() {
		l.clock = 1
		e.stamp, e.writtenAt = l.clock, row.Written
	}
	e.held = row.Held && e.pending()
	l.entries = append(l.entries, e)
	l.last = max(l.last, row.Number)
}

// settle brings a restored log within its bounds.
func (l *noticeLog) settle(now time.Time) {
	l.ready = l.last
	l.expire(now)
	l.dueAgain() // first: nothing that is held is given up
	l.trim(func(*entry) bool { return false })
}

// dueAgain ends the holds of an earlier life: nobody carried what was held, and who
// resumes behind its number would never hear of it.
func (l *noticeLog) dueAgain() {
	for _, e := range l.take(func(e *entry) bool { return e.held }) {
		l.append(e.notice, e.number)
	}
}
