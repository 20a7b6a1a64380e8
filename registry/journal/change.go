package journal

import (
	"encoding/json"
	"fmt"
	"time"

	"afoot/registry"
)

// table is where a key belongs.
type table uint8

const (
	tasks table = iota
	agents
	keys
	counters
	notices
	sessions
	lost
	settings
	hooks
	posts
	budgets
)

// key names what a change is about; of the changes of one key the newest counts.
type key struct {
	table   table
	a, b, c string
	n       uint64
}

// change is one change in line.
type change struct {
	// row is a row of the registry or one of the types below.
	row any
	// order is the place of a then among others.
	order uint64
	then  func()
	// tried says that a transaction with this change has failed: only most
	// probably is it not on disk.
	tried bool
}

// The changes that are no rows of the registry.
type (
	noticePut     NoticeRow
	noticeWritten struct {
		session string
		number  uint64
		at      time.Time
	}
	noticeHeld struct {
		session string
		number  uint64
	}
	noticeGone struct {
		session string
		number  uint64
	}
	sessionMark struct {
		session       string
		last, evicted uint64
	}
	sessionGone struct{ session string }
	lostNotice  struct{ session, owner, agent string }
	lostGone    struct{ session, owner string }
	setting     struct{ name, value string }
)

func keyOf(row any) key {
	switch r := row.(type) {
	case registry.TaskRow:
		return key{table: tasks, a: string(r.Snapshot.ID)}
	case registry.TaskGone:
		return key{table: tasks, a: string(r.ID)}
	case registry.AgentRow:
		return key{table: agents, a: r.Owner.Session, b: r.Owner.Agent, n: r.Owner.Incarnation}
	case registry.AgentGone:
		return key{table: agents, a: r.Owner.Session, b: r.Owner.Agent, n: r.Owner.Incarnation}
	case registry.KeyRow:
		return key{table: keys, a: r.Session, b: r.Subject, c: r.Key}
	case registry.KeyGone:
		return key{table: keys, a: r.Session, b: r.Subject, c: r.Key}
	case registry.CounterRow:
		return key{table: counters, a: string(r.Kind)}
	case noticePut:
		return key{table: notices, a: r.Session, n: r.Number}
	case noticeWritten:
		return key{table: notices, a: r.session, n: r.number}
	case noticeHeld:
		return key{table: notices, a: r.session, n: r.number}
	case noticeGone:
		return key{table: notices, a: r.session, n: r.number}
	case sessionGone:
		return key{table: sessions, a: r.session}
	case sessionMark:
		return key{table: sessions, a: r.session}
	case lostNotice:
		return key{table: lost, a: r.session, b: r.owner}
	case lostGone:
		return key{table: lost, a: r.session, b: r.owner}
	case setting:
		return key{table: settings, a: r.name}
	}
	if k, found := webhookKey(row); found {
		return k
	}
	panic(fmt.Sprintf("journal: no table for a %T", row)) // a row type without a table is a fault in this package
}

// merge puts a newer change over an older one of the same key. False means that
// nothing is left to write.
func merge(older, newer change) (change, bool) {
	newer.tried = newer.tried || older.tried
	switch row := newer.row.(type) {
	case noticeGone:
		switch older.row.(type) {
		case noticePut:
			// A number is given once: a notice that never came near the disk is not there.
			return newer, older.tried || newer.then != nil
		case noticeGone:
			newer.then = both(older.then, newer.then)
		}
	case noticeWritten:
		switch was := older.row.(type) {
		case noticePut:
			was.Written = row.at
			older.row = was
			return older, true
		case noticeGone:
			return older, true
		}
	case noticeHeld:
		switch was := older.row.(type) {
		case noticePut:
			was.Held = true
			older.row, older.then = was, both(older.then, newer.then)
			return older, true
		case noticeGone, noticeWritten:
			return older, true
		}
	case registry.TaskRow:
		if row.Handle == nil {
			newer.row = handled(row, older.row)
		}
	case sessionMark:
		if was, ok := older.row.(sessionMark); ok {
			row.last, row.evicted = max(row.last, was.last), max(row.evicted, was.evicted)
			newer.row = row
		}
	}
	return newer, true
}

// both calls one after the other, of which each may be nil.
func both(first, second func()) func() {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func() { first(); second() }
}

// handled gives a row without a handle that of the change before it in line, which is
// not to be written any more.
func handled(row registry.TaskRow, older any) registry.TaskRow {
	switch was := older.(type) {
	case registry.TaskRow:
		row.Handle = was.Handle
	case registry.TaskGone:
		row.Handle = json.RawMessage{}
	}
	return row
}
