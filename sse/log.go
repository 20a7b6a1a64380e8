package sse

import (
	"slices"
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
	// held entries are pending and not carried (see [Hub.Hold]).
	held bool
	// flights counts delivering streams that have the entry on its way.
	flights int
}

func (e *entry) pending() bool { return e.stamp == 0 }

// mark is what has to survive of a log that holds nothing.
type mark struct {
	// last is the newest number given, evicted the highest one that was evicted.
	last, evicted uint64
}

// noticeLog is the numbered, bounded memory of one session. It knows neither
// connections nor clocks nor locks, so that a store can stand behind it.
type noticeLog struct {
	mark
	size    int
	age     time.Duration
	clock   uint64
	entries []*entry
	// lost has the owners of notices that were evicted while pending, with their
	// agents, until a delivering stream has carried a gap event.
	lost map[string]string
}

// append numbers and keeps a notice. Beyond the size the oldest written entry
// goes; the oldest pending one only if all are pending. evicted is what went.
func (l *noticeLog) append(n Notice) (number uint64, evicted *entry) {
	l.last++
	l.entries = append(l.entries, &entry{number: l.last, notice: n})
	if len(l.entries) <= l.size {
		return l.last, nil
	}
	i := max(0, slices.IndexFunc(l.entries, func(e *entry) bool { return !e.pending() }))
	evicted = l.entries[i]
	l.entries = slices.Delete(l.entries, i, i+1)
	l.forget(evicted)
	return l.last, evicted
}

// expire evicts what was written longer than the age ago. Pending entries do not
// age.
func (l *noticeLog) expire(now time.Time) (evicted []*entry) {
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
		if e.pending() || now.Sub(e.writtenAt) < l.age {
			return false
		}
		evicted = append(evicted, e)
		return true
	})
	for _, e := range evicted {
		l.forget(e)
	}
	return evicted
}

func (l *noticeLog) forget(e *entry) {
	l.evicted = max(l.evicted, e.number)
	if e.pending() {
		if l.lost == nil {
			l.lost = make(map[string]string)
		}
		l.lost[e.notice.Owner] = e.notice.Agent
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
	e.stamp, e.writtenAt, e.held = l.clock, now, false
}

// landed ends a flight of the entry, if it is still there.
func (l *noticeLog) landed(number uint64) {
	if i, found := l.find(number); found {
		l.entries[i].flights--
	}
}

// withdraw removes all notices of a key; it makes no gap.
func (l *noticeLog) withdraw(key string) {
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool { return e.notice.Key == key })
}

// dropOwner removes an owner's pending notices and what was lost of them; it
// makes no gap.
func (l *noticeLog) dropOwner(owner string) {
	delete(l.lost, owner)
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
		return e.pending() && e.notice.Owner == owner
	})
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
			delete(l.lost, owner)
		}
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
