package journal

import (
	"context"
	"slices"
	"time"
)

// NoticeRow is one numbered notice of a session. Like [SessionMark] it is a plain
// type, so that the event hub can ask for it without knowing this package.
type NoticeRow = struct {
	Session string
	Number  uint64
	// Key, Owner, Agent, Event and Data are the hub's.
	Key, Owner, Agent, Event string
	Data                     []byte
	// Written is when a stream first carried it; zero while it is pending.
	Written time.Time
	// Held says that it was held back when it was kept; of no meaning once it was written.
	Held bool
}

// SessionMark is what is known of a session beyond its notices.
type SessionMark = struct {
	Session string
	// Last is the newest number given, Evicted the highest one given up.
	Last, Evicted uint64
	// Lost has the owners whose pending notices were given up, with their agents,
	// until somebody was told.
	Lost map[string]string
}

// Notices keeps the notice logs of the event hub, in one order with the rows of
// the registry. But for Load no method blocks or touches the disk. A number is
// given once per session.
type Notices struct{ journal *Journal }

// Notices gives the journal's part for the event hub.
func (j *Journal) Notices() *Notices { return &Notices{journal: j} }

// Load gives all notices, by session and number, and the mark of each session.
func (n *Notices) Load(ctx context.Context) (rows []NoticeRow, marks []SessionMark, err error) {
	err = n.journal.do(ctx, func(c *db) (err error) {
		rows, marks, err = c.notices()
		return err
	})
	return rows, marks, err
}

// Put adds a notice and raises the session's last number to it. Then, unless nil,
// is called from the writer's goroutine once the notice is written, in the order
// of the puts; it must not block. It is never called for a notice that was gone
// before it was written.
func (n *Notices) Put(session string, number uint64, row NoticeRow, then func()) {
	n.Move(session, nil, number, row, then)
}

// Move is Put and Gone of the old numbers together.
func (n *Notices) Move(session string, old []uint64, number uint64, row NoticeRow, then func()) {
	row.Session, row.Number = session, number
	l := &n.journal.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range old {
		l.addLocked(noticeGone{session: session, number: o}, nil)
	}
	l.addLocked(noticePut(row), then)
	l.addLocked(sessionMark{session: session, last: number}, nil)
	l.endLocked()
}

// Written records when a stream first carried a notice; one that is gone is no
// error.
func (n *Notices) Written(session string, number uint64, at time.Time) {
	n.add(noticeWritten{session: session, number: number, at: at})
}

// Held records that a pending notice is held back. Then is as in Put.
func (n *Notices) Held(session string, number uint64, then func()) {
	l := &n.journal.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addLocked(noticeHeld{session: session, number: number}, then)
	l.endLocked()
}

// Gone removes notices; one that is not there is no error. Then, unless nil, is called from
// the writer's goroutine once that is written; it must not block.
func (n *Notices) Gone(session string, numbers []uint64, then func()) {
	l := &n.journal.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, number := range numbers {
		if i < len(numbers)-1 {
			l.addLocked(noticeGone{session: session, number: number}, nil)
		} else {
			l.addLocked(noticeGone{session: session, number: number}, then)
		}
	}
	l.endLocked()
}

// Mark raises a session's numbers; a lower one than is known changes nothing.
func (n *Notices) Mark(session string, last, evicted uint64) {
	n.add(sessionMark{session: session, last: last, evicted: evicted})
}

// Lost records that pending notices of an owner were given up.
func (n *Notices) Lost(session, owner, agent string) {
	n.add(lostNotice{session: session, owner: owner, agent: agent})
}

// Told ends what Lost recorded of the owners.
func (n *Notices) Told(session string, owners ...string) {
	rows := make([]any, len(owners))
	for i, owner := range owners {
		rows[i] = lostGone{session: session, owner: owner}
	}
	n.add(rows...)
}

// Forget removes the marks of sessions.
func (n *Notices) Forget(sessions ...string) {
	rows := make([]any, len(sessions))
	for i, session := range sessions {
		rows[i] = sessionGone{session: session}
	}
	n.add(rows...)
}

// epochSetting is the setting that has the epoch of the numbers.
const epochSetting = "epoch"

// Epoch gives what SetEpoch has set; empty if nothing.
func (n *Notices) Epoch() string {
	epoch, _ := n.journal.Setting(epochSetting)
	return epoch
}

// SetEpoch sets the epoch of the numbers.
func (n *Notices) SetEpoch(epoch string) { n.journal.SetSetting(epochSetting, epoch) }

func (n *Notices) add(rows ...any) {
	if len(rows) == 0 {
		return
	}
	l := &n.journal.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range rows {
		l.addLocked(row, nil)
	}
	l.endLocked()
}

func (c *db) notices() (rows []NoticeRow, marks []SessionMark, err error) {
	err = c.query("SELECT session, number, key, owner, agent, event, data, written_at, held FROM notices ORDER BY session, number", func(row *columns) {
		rows = append(rows, NoticeRow{
			Session: row.text(), Number: row.uint(),
			Key: row.text(), Owner: row.text(), Agent: row.text(), Event: row.text(),
			Data: row.bytes(), Written: row.time(), Held: row.bool(),
		})
	})
	if err != nil {
		return nil, nil, err
	}
	err = c.query("SELECT session, last, evicted FROM sessions ORDER BY session", func(row *columns) {
		marks = append(marks, SessionMark{Session: row.text(), Last: row.uint(), Evicted: row.uint()})
	})
	if err != nil {
		return nil, nil, err
	}
	err = c.query("SELECT session, owner, agent FROM lost_notices", func(row *columns) {
		session, owner, agent := row.text(), row.text(), row.text()
		i := slices.IndexFunc(marks, func(m SessionMark) bool { return m.Session == session })
		if i < 0 {
			i = len(marks)
			marks = append(marks, SessionMark{Session: session})
		}
		if marks[i].Lost == nil {
			marks[i].Lost = make(map[string]string)
		}
		marks[i].Lost[owner] = agent
	})
	return rows, marks, err
}
