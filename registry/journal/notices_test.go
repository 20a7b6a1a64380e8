package journal

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// hubJournal is how the event hub asks for its part, without this package.
type hubJournal interface {
	Move(session string, old []uint64, number uint64, row struct {
		Session                  string
		Number                   uint64
		Key, Owner, Agent, Event string
		Data                     []byte
		Written                  time.Time
		Held                     bool
	}, then func())
	Load(ctx context.Context) (rows []struct {
		Session                  string
		Number                   uint64
		Key, Owner, Agent, Event string
		Data                     []byte
		Written                  time.Time
		Held                     bool
	}, marks []struct {
		Session       string
		Last, Evicted uint64
		Lost          map[string]string
	}, err error)
	Epoch() string
	SetEpoch(epoch string)
	Written(session string, number uint64, at time.Time)
	Held(session string, number uint64, then func())
	Gone(session string, numbers []uint64, then func())
	Mark(session string, last, evicted uint64)
	Lost(session, owner, agent string)
	Told(session string, owners ...string)
	Forget(sessions ...string)
}

var _ hubJournal = (*Notices)(nil)

func TestNoticesSurvive(t *testing.T) {
	path := at(t)
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	n := j.Notices()
	told := make(chan uint64, 10)
	row := NoticeRow{Key: "bash-1", Owner: "alice/default/1", Agent: "default", Event: "task.done", Data: []byte(`{"id":"bash-1"}`)}
	for i := range uint64(5) {
		n.Put("alice", i+1, row, func() { told <- i + 1 })
	}
	for i := range uint64(5) {
		require.Equal(t, i+1, <-told, "in order")
	}
	when := time.Unix(1_700_000_000, 5).UTC()
	n.Written("alice", 2, when)
	n.Written("alice", 99, when)
	n.Gone("alice", []uint64{1, 98}, nil)
	n.Mark("alice", 3, 1)
	n.Lost("alice", "alice/default/1", "default")
	n.Lost("alice", "alice/agent-2/7", "agent-2")
	n.Told("alice", "alice/agent-2/7", "nobody")
	n.Move("alice", []uint64{3}, 6, row, nil)
	n.Lost("carol", "c", "a")
	n.Mark("dave", 1, 0)
	n.Forget("dave", "nobody")
	n.Mark("erin", 5, 5)
	require.NoError(t, j.Sync(t.Context(), j.SetSetting("last", "x")))
	n.Forget("erin")
	n.Mark("", 9, 9)
	n.SetEpoch("first")
	require.NoError(t, j.Sync(t.Context(), j.SetSetting("last", "x")), "all share one order")
	check := func(j *Journal) {
		rows, marks, err := j.Notices().Load(t.Context())
		require.NoError(t, err)
		want := make([]NoticeRow, 4)
		for i, number := range []uint64{2, 4, 5, 6} {
			want[i] = row
			want[i].Session, want[i].Number = "alice", number
		}
		want[0].Written = when
		require.Equal(t, want, rows)
		require.Equal(t, []SessionMark{
			{Session: "", Last: 9, Evicted: 9},
			{Session: "alice", Last: 6, Evicted: 1, Lost: map[string]string{"alice/default/1": "default"}},
			{Session: "carol", Lost: map[string]string{"c": "a"}},
		}, marks)
		require.Equal(t, "first", j.Notices().Epoch())
	}
	check(j)
	shut(t, j)
	check(opened(t, Config{Path: path}))
}

func TestMerge(t *testing.T) {
	when := time.Unix(1, 0)
	put := noticePut{Session: "s", Number: 1, Key: "k"}
	written := put
	written.Written = when
	for name, c := range map[string]struct {
		older, newer change
		want         any
		left, then   bool
	}{
		"put, written":     {change{row: put, then: func() {}}, change{row: noticeWritten{"s", 1, when}}, written, true, true},
		"put, gone":        {change{row: put, then: func() {}}, change{row: noticeGone{"s", 1}}, noticeGone{"s", 1}, false, false},
		"tried put, gone":  {change{row: put, tried: true}, change{row: noticeGone{"s", 1}}, noticeGone{"s", 1}, true, false},
		"gone, written":    {change{row: noticeGone{"s", 1}}, change{row: noticeWritten{"s", 1, when}}, noticeGone{"s", 1}, true, false},
		"written, gone":    {change{row: noticeWritten{"s", 1, when}}, change{row: noticeGone{"s", 1}}, noticeGone{"s", 1}, true, false},
		"marks never fall": {change{row: sessionMark{"s", 5, 1}}, change{row: sessionMark{"s", 4, 2}}, sessionMark{"s", 5, 2}, true, false},
		"lost, told":       {change{row: lostNotice{"s", "o", "a"}}, change{row: lostGone{"s", "o"}}, lostGone{"s", "o"}, true, false},
		"task, gone":       {change{row: registry.TaskRow{}}, change{row: registry.TaskGone{}}, registry.TaskGone{}, true, false},
		"gone, task":       {change{row: registry.TaskGone{}, tried: true}, change{row: registry.TaskRow{}}, registry.TaskRow{Handle: []byte{}}, true, false},
		"task, task":       {change{row: registry.TaskRow{Handle: []byte("1")}}, change{row: registry.TaskRow{Seq: 1}}, registry.TaskRow{Seq: 1, Handle: []byte("1")}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, keyOf(c.older.row), keyOf(c.newer.row))
			got, left := merge(c.older, c.newer)
			require.Equal(t, c.left, left)
			require.Equal(t, c.want, got.row)
			require.Equal(t, c.older.tried, got.tried)
			require.Equal(t, c.then, got.then != nil)
		})
	}
}

// What was removed before it came near the disk is called back as well: who waits for it would
// wait for ever.
func TestGoneIsCalledBackInAnyCase(t *testing.T) {
	n := &Notices{journal: &Journal{}}
	l := &n.journal.line
	l.wake, l.rows = make(chan struct{}, 1), make(map[key]change)
	var called []string
	then := func(name string) func() { return func() { called = append(called, name) } }
	n.Put("s", 1, NoticeRow{}, then("put"))
	n.Held("s", 1, then("held"))
	n.Gone("s", []uint64{1, 2}, then("first"))
	n.Gone("s", []uint64{2}, then("second"))
	n.Put("s", 3, NoticeRow{}, nil)
	n.Gone("s", []uint64{3}, then("third"))
	l.landed(l.take())
	require.Equal(t, []string{"first", "second", "third"}, called)
}
