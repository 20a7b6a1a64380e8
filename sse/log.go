package sse

import (
	"slices"
	"sync/atomic"
	"time"
)

// entry is one kept notice. A withdrawn one is no entry any more.
type entry struct {
	number uint64
	notice Notice
	// stamp is the log's clock when the entry was first written to a delivering
	// stream; zero while it is pending.
	stamp     uint64
	writtenAt time.Time
	// held entries are pending and not carried (see [Hub.Hold]). Parked ones are kept as
	// such by the journal.
	held, parked bool
	// unheld says that it was on its way, or may have been, when it was to be held, and so
	// stays as it is.
	unheld bool
	// flown says that a delivering stream has, or had, the entry on its way, or may have had
	// in an earlier life.
	flown bool
}

func (e *entry) pending() bool { return e.stamp == 0 }

// rules are what the logs of a hub have in common.
type rules struct {
	size, most int
	age        time.Duration
	// journal, when not nil, stands behind the logs; kept hears what it has kept, and
	// forgotten what it has removed, each with the number of its call. Calls numbers what the
	// journal is told and calls back; a log does both under its lock.
	journal   Journal
	kept      func(session string, number, call uint64)
	forgotten func(session string, call uint64)
	calls     atomic.Uint64
	// answered, when not nil, knows what was told otherwise (see [Hub.Unless]); parked hears
	// which hold the journal has kept.
	answered func(key string) (delivered, underway bool)
	parked   func(session string, number uint64)
}

// passage is what a stream does when it comes to an entry.
type passage int

const (
	carry passage = iota
	pass
	// wait until the entry is held, due or withdrawn: whoever passed over it before that is
	// kept could resume behind it, and would never hear of it.
	wait
)

func (r *rules) passage(e *entry) passage {
	if e.held {
		if e.parked {
			return pass
		}
		return wait
	}
	if r.answered == nil || e.notice.Key == "" {
		return carry
	}
	delivered, underway := r.answered(e.notice.Key)
	switch {
	case e.pending() && (delivered || underway && !e.unheld):
		return wait
	case delivered:
		return pass
	}
	// Written before, it may be told again while an answer is on its way: that may be lost.
	return carry
}

// noticeLog is the numbered, bounded memory of one session. It knows neither
// connections nor clocks nor locks.
type noticeLog struct {
	*rules
	session string
	mark
	// ready is the newest number that may be carried. Without a journal that is
	// last.
	ready uint64
	// unmarked says that the journal does not know where the log began.
	unmarked bool
	clock    uint64
	entries  []*entry
	// leaving has what was pending and is an entry no more, until the journal knows that.
	leaving []leaving
	// lost has the owners of notices that were evicted while pending, with their
	// agents, until a delivering stream has carried a gap event.
	lost map[string]string
}

// append numbers and keeps a notice, in place of those with the old numbers,
// which are out of the log already.
func (l *noticeLog) append(n Notice, old ...uint64) (number uint64) {
	l.last++
	e := &entry{number: l.last, notice: n}
	l.entries = append(l.entries, e)
	l.put(e, old)
	return l.last
}

// trim evicts what goes beyond the bounds: the oldest written entry, unless it is
// still wanted; where there is none only what goes beyond the outer bound, the
// oldest written entry first.
func (l *noticeLog) trim(wanted func(*entry) bool) (evicted []*entry) {
	for len(l.entries) > l.size {
		i := slices.IndexFunc(l.entries, func(e *entry) bool { return !e.pending() })
		if len(l.entries) <= l.most && (i < 0 || wanted(l.entries[i])) {
			break
		}
		i = max(0, i)
		evicted = append(evicted, l.entries[i])
		l.entries = slices.Delete(l.entries, i, i+1)
	}
	l.forget(evicted...)
	return evicted
}

// expire evicts what was written longer than the age ago. Pending entries do not
// age.
func (l *noticeLog) expire(now time.Time) (evicted []*entry) {
	evicted = l.take(func(e *entry) bool { return !e.pending() && now.Sub(e.writtenAt) >= l.age })
	l.forget(evicted...)
	return evicted
}

// take takes entries out of the log, and tells nobody.
func (l *noticeLog) take(which func(*entry) bool) (taken []*entry) {
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
		if !which(e) {
			return false
		}
		taken = append(taken, e)
		return true
	})
	return taken
}

// forget records that entries were evicted. The journal hears of the gap before
// it loses the entries: a crash in between makes one too many, and none too few.
func (l *noticeLog) forget(evicted ...*entry) {
	if len(evicted) == 0 {
		return
	}
	for _, e := range evicted {
		l.evicted = max(l.evicted, e.number)
		if e.held { // it was due behind all that there is, and streams have passed over it
			l.evicted = l.last
		}
		if e.pending() {
			l.lose(e.notice.Owner, e.notice.Agent)
		}
	}
	if l.journal != nil {
		l.journal.Mark(l.session, l.last, l.evicted)
	}
	l.gone(evicted, nil) // who misses them is told of the gap
}

func (l *noticeLog) lose(owner, agent string) {
	if l.lost == nil {
		l.lost = make(map[string]string)
	}
	l.lost[owner] = agent
	if l.journal != nil {
		l.journal.Lost(l.session, owner, agent)
	}
}

// written records that a delivering stream has carried the entry.
func (l *noticeLog) written(number uint64, now time.Time) {
	i, found := l.find(number)
	if !found || !l.entries[i].pending() {
		return
	}
	l.clock++
	e := l.entries[i]
	e.stamp, e.writtenAt, e.held, e.unheld = l.clock, now, false, false
	if l.journal != nil {
		l.journal.Written(l.session, number, now)
	}
}

// withdraw removes all notices of a key; it makes no gap.
func (l *noticeLog) withdraw(key string) {
	l.erase(l.take(func(e *entry) bool { return e.notice.Key == key }))
}

// dropOwner removes an owner's pending notices and what was lost of them; it
// makes no gap.
func (l *noticeLog) dropOwner(owner string) {
	if _, found := l.lost[owner]; found {
		l.tell(owner)
	}
	l.erase(l.take(func(e *entry) bool { return e.pending() && e.notice.Owner == owner }))
}

// missed reports whether undelivered notices for the agent, or with an empty
// agent for anybody, were given up and nobody was told yet.
func (l *noticeLog) missed(agent string) bool {
	for _, a := range l.lost {
		if agent == "" || a == agent {
			return true
		}
	}
	return false
}

// told records that a delivering stream with that filter has carried a gap event.
func (l *noticeLog) told(agent string) {
	for owner, a := range l.lost {
		if agent == "" || a == agent {
			l.tell(owner)
		}
	}
}

func (l *noticeLog) tell(owner string) {
	delete(l.lost, owner)
	if l.journal != nil {
		l.journal.Told(l.session, owner)
	}
}

// empty reports whether the mark is all there is.
func (l *noticeLog) empty() bool { return len(l.entries) == 0 && len(l.lost) == 0 }

// find gives the place of the first entry that is not below number.
func (l *noticeLog) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, number, func(e *entry, n uint64) int {
		switch {
		case e.number < n:
			return -1
		case e.number > n:
			return 1
		}
		return 0
	})
}
