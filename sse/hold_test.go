package sse

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestHeldNoticesWait(t *testing.T) {
	l := newLog(10)
	for _, key := range []string{"a", "b", "c"} {
		l.push(Notice{Key: key, Owner: "o", Agent: "o"})
	}
	l.written(2, day0)
	l.hold("a")
	l.hold("b")
	c, _ := l.place("", "ep", "")
	require.Equal(t, []uint64{3}, l.rest(c), "a is held; b was delivered before")
	c, _ = l.place("", "ep", "ep-0")
	require.Equal(t, []uint64{2, 3}, l.rest(c), "a delivered notice is replayed all the same")

	// One that was on its way when it was held, and arrived, is not due again.
	l.hold("c")
	l.written(3, day0)
	c, _ = l.place("", "ep", "ep-2")
	require.Equal(t, []uint64{3}, l.rest(c), "it is replayed like any delivered one")
	require.Empty(t, l.unhold("c"))
	require.Empty(t, l.unhold("b"))
	due := l.unhold("a")
	require.Len(t, due, 1)
	n, _ := l.push(due[0].notice)
	require.Equal(t, uint64(4), n)
	c, _ = l.place("", "ep", "")
	require.Equal(t, []uint64{4}, l.rest(c))
	require.Empty(t, l.unhold("a"))

	l.hold("a")
	l.withdraw("a")
	require.Empty(t, l.unhold("a"))
	l.push(Notice{Key: "d", Owner: "o"})
	l.hold("d")
	l.dropOwner("o")
	require.Empty(t, l.unhold("d"))
}

// TestNoHoldInFlight: a notice that is on its way is never renumbered, whether it
// arrives or not.
func TestNoHoldInFlight(t *testing.T) {
	l := newLog(10)
	l.push(Notice{Key: "a"})
	c, _ := l.place("", "ep", "")
	e := l.next(&c)
	e.flown = true
	l.hold("a")
	require.Empty(t, l.unhold("a"), "it may arrive")
	c, _ = l.place("", "ep", "")
	require.Equal(t, []uint64{1}, l.rest(c), "lost on its way: pending, under its number")
	l.hold("a")
	require.Empty(t, l.unhold("a"), "its client may have it all the same")
	l.withdraw("a")
}

// TestWhoResumesHasIt: what a stream resumes behind has arrived, in this life or an earlier
// one. What may have been carried before it is pending, and under no other number.
func TestWhoResumesHasIt(t *testing.T) {
	for _, restored := range []bool{false, true} {
		l := newLog(10)
		for _, key := range []string{"a", "b", "held", "c", "never"} {
			l.push(Notice{Key: key, Agent: "agent of " + key})
		}
		l.hold("held")
		for _, e := range l.entries {
			e.flown = restored || e.number != 3 && e.number < 5
		}
		c, _ := l.place("agent of b", "ep", "ep-4")
		l.arrived(&c, day0)
		require.True(t, l.entries[3].pending(), "that stream was not for it")
		c, _ = l.place("", "ep", "ep-4")
		l.arrived(&c, day0)
		for i, pending := range []bool{true, true, true, false, true} {
			require.Equal(t, pending, l.entries[i].pending(), "%d", i+1)
			l.hold(l.entries[i].notice.Key)
		}
		for _, key := range []string{"a", "b", "c"} {
			require.Empty(t, l.unhold(key))
		}
		require.Len(t, l.unhold("held"), 1)
	}
	l := newLog(10)
	l.push(Notice{Key: "a"})
	c, _ := l.place("", "ep", "ep-1")
	l.arrived(&c, day0)
	require.True(t, l.entries[0].pending(), "it was never on its way: whoever says so has not got it")
}

// TestNoHoldOfWhatMayHaveBeenCarried: nobody knows whether a notice of an earlier life was
// on its way when that ended. Due again under another number it would be told twice.
func TestNoHoldOfWhatMayHaveBeenCarried(t *testing.T) {
	l := newLog(10)
	l.restore(NoticeRow{Number: 1, Key: "a"})
	l.settle(day0)
	l.answered = func(string) (bool, bool) { return false, true }
	c, _ := l.place("", "ep", "")
	require.Empty(t, l.rest(c), "nobody knows yet what becomes of it")
	l.hold("a")
	require.Equal(t, []uint64{1}, l.rest(c), "no stream waits for long")
	l.answered = nil
	l.due("a")
	require.Equal(t, uint64(1), l.last)
	require.Equal(t, []uint64{1}, l.rest(c))
}

// TestHoldAtTheHub: a held notice comes behind a later one, to a stream that was
// open all along.
func TestHoldAtTheHub(t *testing.T) {
	h := NewHub(Config{})
	h.Append("s", Notice{Key: "a"})
	h.Hold("s", "a")
	h.Hold("s", "unknown")
	h.Hold("nobody", "a")
	h.Append("s", Notice{Key: "b"})
	h.Due("s", "a")
	h.Due("s", "a")
	h.Due("nobody", "a")
	s := h.lookup("s")
	require.NotNil(t, s)
	defer h.release(s)
	c, _ := s.log.place("", h.cfg.Epoch, "")
	require.Equal(t, []uint64{2, 3}, s.log.rest(c))
}

// TestUnless: what was answered otherwise is not carried, whether the hub was told so yet
// or not; what is only on its way stops a stream until the hub is told.
func TestUnless(t *testing.T) {
	h := NewHub(Config{})
	type state struct{ delivered, underway bool }
	states := map[string]state{}
	h.Unless(func(key string) (bool, bool) { return states[key].delivered, states[key].underway })
	for _, key := range []string{"a", "b", "c", "d"} {
		h.Append("s", Notice{Key: key})
	}
	s := h.lookup("s")
	require.NotNil(t, s)
	defer h.release(s)
	first, _ := s.log.place("", h.cfg.Epoch, "")
	rest := func(c cursor) []uint64 { return s.log.rest(c) }
	require.Equal(t, []uint64{1, 2, 3, 4}, rest(first))
	states["b"] = state{underway: true}
	require.Equal(t, []uint64{1}, rest(first), "nobody knows yet what becomes of it")
	h.Hold("s", "b")
	require.Equal(t, []uint64{1, 3, 4}, rest(first))
	states["b"] = state{}
	h.Due("s", "b")
	later, _ := s.log.place("", h.cfg.Epoch, "")
	require.Equal(t, []uint64{1, 3, 4, 5}, rest(later))
	states["c"] = state{delivered: true}
	require.Equal(t, []uint64{1}, rest(later))
	h.Withdraw("s", "c")
	require.Equal(t, []uint64{1, 4, 5}, rest(later))

	// In a replay what was delivered is left out, and what is on its way is not: nobody
	// would tell it again.
	for _, number := range []uint64{1, 4, 5} {
		s.log.written(number, day0)
	}
	states["a"], states["d"] = state{delivered: true}, state{underway: true}
	replay, _ := s.log.place("", h.cfg.Epoch, string(formatID(h.cfg.Epoch, 0)))
	require.Equal(t, []uint64{4, 5}, rest(replay))
}

// TestHoldMeetsAFlight: a notice that was on its way when it was to be held stays what it
// is, and stops no other stream.
func TestHoldMeetsAFlight(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		l := newLog(10)
		l.push(Notice{Key: "a"})
		l.push(Notice{Key: "b"})
		l.answered = func(key string) (bool, bool) { return false, key == "a" }
		c, _ := l.place("", "e", "")
		require.Empty(t, l.rest(c), "nobody knows yet")
		l.entries[0].flown = true
		l.hold("a")
		require.Equal(t, []uint64{1, 2}, l.rest(c))
		if arrives {
			l.written(1, day0)
		}
		require.Equal(t, []uint64{1, 2}, l.rest(c))
		l.due("a")
		require.False(t, l.entries[0].unheld)
		require.Len(t, l.entries, 2)
		require.Equal(t, uint64(1), l.entries[0].number)
	}
}

// TestAppendEndsAHold: whoever announces a key again, which the hub has kept, holds it no
// more.
func TestAppendEndsAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := OpenHub(t.Context(), Config{Journal: yes{}})
		require.NoError(t, err)
		h.Append("s", Notice{Key: "a"})
		h.Hold("s", "a")
		synctest.Wait()
		h.Append("s", Notice{Key: "a"})
		synctest.Wait()
		require.False(t, h.Pending("s", "")[0].Held)
		require.NoError(t, h.Close(t.Context(), ByeShutdown))
	})
}

// yes is a journal that has kept everything at once.
type yes struct{ Journal }

func (yes) Load(context.Context) ([]NoticeRow, []SessionMark, error)      { return nil, nil, nil }
func (yes) Epoch() string                                                 { return "e" }
func (yes) SetEpoch(string)                                               {}
func (yes) Move(_ string, _ []uint64, _ uint64, _ NoticeRow, then func()) { go then() }
func (yes) Held(_ string, _ uint64, then func())                          { go then() }
func (yes) Mark(string, uint64, uint64)                                   {}
