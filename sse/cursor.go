package sse

import (
	"strconv"
	"strings"
	"time"
)

// cursor is where a stream stands in its session's log.
type cursor struct {
	// agent, when not empty, is the only one whose notices the stream carries.
	agent string
	// after is the number behind which the stream goes on.
	after uint64
	// Up to backlog the stream carries only what was pending when it opened, that
	// is, what is pending or was written after stamp.
	backlog, stamp uint64
}

func (c *cursor) wants(e *entry) bool { return !e.held && c.concerns(e) }

// minds reports whether the filter lets the entry through.
func (c *cursor) minds(e *entry) bool { return c.agent == "" || c.agent == e.notice.Agent }

func (c *cursor) concerns(e *entry) bool {
	if e.number <= c.after || !c.minds(e) {
		return false
	}
	return e.number > c.backlog || e.pending() || e.stamp > c.stamp
}

// next gives the next entry for a cursor and moves the cursor onto it. It goes
// no further than the journal: what is kept comes in order.
func (l *noticeLog) next(c *cursor) *entry {
	i, _ := l.find(c.after + 1)
	ready := l.readyFor(c)
	for _, e := range l.entries[i:] {
		if e.number > ready {
			break
		}
		does := pass
		if c.concerns(e) {
			does = l.passage(e)
		}
		if does == wait {
			break
		}
		c.after = e.number
		if does == carry {
			return e
		}
	}
	return nil
}

// place chooses where a new stream begins. The reason is empty unless the stream
// has to begin with a gap event.
func (l *noticeLog) place(agent, epoch, lastEventID string) (c cursor, gap string) {
	c = cursor{agent: agent, backlog: l.last, stamp: l.clock}
	if lastEventID == "" {
		if l.missed(agent) {
			gap = GapUndelivered
		}
		return c, gap
	}
	number, gap := parseID(epoch, lastEventID)
	switch {
	case gap != "":
	case number > l.ready: // nobody can have seen it
		gap = GapAhead
	case number < l.evicted:
		gap = GapEvicted
	default:
		return cursor{agent: agent, after: number}, ""
	}
	return c, gap
}

// arrived records that whoever resumes behind a notice that may have been carried has it: the
// connection, or the process, ended before that was known. That says nothing of those before
// it: the client may have asked for others then, with another filter. They stay pending, and
// come again, under their numbers, to who connects anew.
func (l *noticeLog) arrived(c *cursor, now time.Time) {
	i, found := l.find(c.after)
	if !found {
		return
	}
	if e := l.entries[i]; e.flown && !e.held && c.minds(e) {
		l.written(e.number, now)
	}
}

// formatID gives the id of a notice on the wire.
func formatID(epoch string, number uint64) []byte {
	id := make([]byte, 0, len(epoch)+21)
	id = append(id, epoch...)
	id = append(id, '-')
	return strconv.AppendUint(id, number, 10)
}

// parseID reads an id of this epoch, or says why it is none. Only what formatID
// writes is read, and number 0, which stands before the first notice.
func parseID(epoch, id string) (number uint64, gap string) {
	i := strings.LastIndexByte(id, '-')
	if i <= 0 || !decimal(id[i+1:]) {
		return 0, GapNotAnID
	}
	if id[:i] != epoch {
		return 0, GapOtherEpoch
	}
	number, err := strconv.ParseUint(id[i+1:], 10, 64)
	if err != nil {
		return 0, GapAhead // decimal, so only out of range
	}
	return number, ""
}

func decimal(s string) bool {
	return s != "" && (s == "0" || s[0] != '0') && strings.Trim(s, "0123456789") == ""
}
