package sse_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// Too many notices for the log while the journal is in trouble: the streams are
// told of a gap and go on.
func TestALogThatRunsOverWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(false)
		b := onTape(t, p, sse.Config{LogSize: 3, LogMax: 1})
		p.write(-1)
		c := b.connect("session=s", "")
		addTo(b.Hub, "s", "1")
		p.write(-1)
		c.notices("1")
		synctest.Wait()
		addTo(b.Hub, "s", "2", "3", "4", "5", "6", "7")
		require.Equal(t, event{ID: "e-1", Name: "gap", Data: `{"reason":"undelivered"}`}, c.next())
		synctest.Wait()
		for len(c.events) > 0 { // those on their way at once are told together
			require.Equal(t, "gap", c.next().Name)
		}
		require.Equal(t, 1, b.Streams())
		p.write(-1)
		c.notices("5", "6", "7")
		synctest.Wait()
		p.write(-1)
		_, marks := p.state()
		require.Equal(t, sse.SessionMark{Session: "s", Last: 7, Evicted: 4, Lost: map[string]string{}}, marks["s"])
		b.end()
	})
}

func TestACrashBetweenAGapAndItsEviction(t *testing.T) {
	for n := range 5 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTape(false)
				b := onTape(t, p, sse.Config{LogSize: 2, LogMax: 1})
				addTo(b.Hub, "s", "1", "2")
				p.write(-1)
				addTo(b.Hub, "s", "3")
				require.Equal(t, 4, p.waiting())
				p.write(n)
				b, _ = reborn(t, b, p, sse.Config{LogSize: 2, LogMax: 1})
				defer b.end()
				c := b.connect("session=s", "e-0")
				if n == 0 {
					c.notices("1", "2")
					return
				}
				require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, c.next())
				c.notices("2", "3")
			})
		})
	}
}

func TestAnEpochIsChosenOnce(t *testing.T) {
	p := newTape(true)
	p.auto = false
	open := func(p *tape, cfg sse.Config) string {
		cfg.Journal = p
		h, err := sse.OpenHub(t.Context(), cfg)
		require.NoError(t, err)
		require.NoError(t, h.Close(t.Context(), sse.ByeShutdown))
		return p.Epoch()
	}
	first := open(p, sse.Config{})
	require.Len(t, first, 26)
	require.Equal(t, first, open(p, sse.Config{}))
	p.write(-1)
	p = p.crash()
	require.Equal(t, first, open(p, sse.Config{}))
	require.Zero(t, p.waiting())
	require.Equal(t, "mine", open(p, sse.Config{Epoch: "mine"}))
	p = p.crash()
	require.Equal(t, first, open(p, sse.Config{}), "it was not kept, and neither was any notice of it")
	p.SetEpoch("no\n")
	require.Len(t, open(p, sse.Config{}), 26)
}

func TestAJournalThatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	_, err := sse.OpenHub(t.Context(), sse.Config{Journal: &tape{loadErr: broken}})
	require.ErrorIs(t, err, broken)
	require.Panics(t, func() { sse.NewHub(sse.Config{Journal: newTape(false)}) })
}

// Sessions that hold nothing are remembered in bounded room, and no number comes
// twice.
func TestTheNumbersOfManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 25_000
		p := newTape(false)
		b := onTape(t, p, sse.Config{})
		session := func(i int) string { return fmt.Sprint("s", i) }
		last := make([]uint64, sessions)
		add := func(i int) {
			n := b.Append(session(i), sse.Notice{Key: "k", Event: "task.done", Data: []byte("k")})
			require.Greater(t, n, last[i])
			last[i] = n
			b.Withdraw(session(i), "k")
			if i%100 == 0 {
				p.write(-1)
			}
		}
		for i := range sessions {
			for range i%7 + 1 {
				add(i)
			}
		}
		for i := range sessions {
			add(i)
		}
		p.write(-1)
		for range 2 {
			_, marks := p.state()
			require.Less(t, len(marks), 12_000)
			b, p = reborn(t, b, p, sse.Config{})
			for i := range sessions {
				if i%10 == 0 {
					add(i)
				}
			}
			p.write(-1)
		}
		// One that was forgotten gets a gap, and then everything.
		b, p = reborn(t, b, p, sse.Config{})
		_, marks := p.state()
		forgotten := 0
		for i := range sessions {
			if _, known := marks[session(i)]; known {
				continue
			}
			if forgotten++; forgotten > 3 {
				break
			}
			c := b.connect("session="+session(i), "e-1")
			require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, c.next())
			add(i)
			addTo(b.Hub, session(i), "after")
			p.write(-1)
			c.notices("after")
			c.close()
			synctest.Wait()
			p.write(-1)
			_, marks := p.state()
			require.NotZero(t, marks[session(i)].Evicted)
		}
		require.Positive(t, forgotten)
		b.end()
	})
}

// TestAHeldNoticeIsGivenUp: streams have passed over it, so that each of them is owed the
// gap, and whoever resumes behind it as well.
func TestAHeldNoticeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := sse.Config{LogSize: 3, LogMax: 1}
		p := newTape(false)
		b := onTape(t, p, cfg)
		defer func() { b.end() }()
		add := func(key, agent string) {
			b.Append("s", sse.Notice{Key: key, Owner: agent, Agent: agent, Event: "task.done", Data: []byte(key)})
		}
		gap := event{Name: "gap", Data: `{"reason":"undelivered"}`}
		open, away, other := b.connect("session=s&agent=a", ""), b.connect("session=s&agent=a&observe", ""), b.connect("session=s&agent=b&observe", "")
		add("held", "a")
		b.Hold("s", "held")
		p.write(-1)
		add("1", "a")
		p.write(-1)
		away.notices("1")
		away.close()
		open.notices("1")
		synctest.Wait()
		b.Withdraw("s", "1")
		for _, key := range []string{"2", "3", "4"} {
			add(key, "b") // with the last one the held one has to go
		}
		b.Due("s", "held")
		p.write(-1)
		other.notices("2", "3", "4")
		gap.ID = "e-2"
		require.Equal(t, gap, open.next(), "it is open all along")
		synctest.Wait()
		away = b.connect("session=s&agent=a&observe", "e-2")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, away.next(), "it resumes behind it")
		b, _ = reborn(t, b, p, cfg)
		away = b.connect("session=s&agent=a&observe", "e-2")
		require.Equal(t, "gap", away.next().Name)
	})
}
