package sse_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// onTape opens a hub on a tape, with the ids of another one.
func onTape(t *testing.T, p *tape, cfg sse.Config) *bubble {
	t.Helper()
	if p.Epoch() == "" {
		p.SetEpoch("e")
	}
	cfg.Journal = p
	return newBubble(t, cfg)
}

// reborn ends a hub without a word to its journal, and opens one on what that has.
func reborn(t *testing.T, b *bubble, p *tape, cfg sse.Config) (*bubble, *tape) {
	t.Helper()
	p = p.crash()
	b.end()
	synctest.Wait()
	return onTape(t, p, cfg), p
}

// nothing requires that no event is there, comments aside.
func (c *client) nothing() {
	c.t.Helper()
	synctest.Wait()
	for len(c.events) > 0 {
		e := <-c.events
		require.NotEmpty(c.t, e.Comment, "%v", e)
	}
}

func TestANoticeWaitsUntilItIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(false)
		b := onTape(t, p, sse.Config{})
		defer b.end()
		c := b.connect("session=s", "")
		o := b.connect("session=s&observe", "")
		addTo(b.Hub, "s", "1", "2", "3")
		require.Equal(t, uint64(4), b.Append("s", sse.Notice{Key: "4", Event: "task.done", Data: []byte("4")}))
		c.nothing()
		late := b.connect("session=s", "")
		late.nothing()

		// Nothing else waits.
		begin := time.Now()
		b.Poke("s", "a")
		require.Equal(t, event{Name: "tasks.changed", Data: `{"agent":"a"}`}, c.next())
		require.Equal(t, 100*time.Millisecond, time.Since(begin))
		for range 10 {
			before := time.Now()
			require.Equal(t, event{Comment: "heartbeat"}, <-c.events)
			require.LessOrEqual(t, time.Since(before), 15*time.Second)
		}
		addTo(b.Hub, "t", "1") // another session waits as well

		for len(o.events) > 0 {
			<-o.events
		}
		for len(late.events) > 0 {
			<-late.events
		}
		p.write(2) // the epoch and the first
		c.notices("1")
		c.nothing()
		b.Withdraw("s", "2")
		p.write(-1)
		c.notices("3", "4")
		o.notices("1", "3", "4")
		late.notices("1", "3", "4")
		require.Equal(t, "e-4", c.lastID)
	})
}

func TestAnIDThatNobodyCanHaveSeenIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(false)
		b := onTape(t, p, sse.Config{})
		defer b.end()
		addTo(b.Hub, "s", "1")
		c := b.connect("session=s", "e-1")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"ahead"}`}, c.next())
		p.write(-1)
		c.notices("1")
	})
}

func TestFeedsDoNotWaitForTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onTape(t, newTape(false), sse.Config{})
		defer b.end()
		addTo(b.Hub, "s", "1")
		f, err := b.OpenFeed(&deadlines{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", http.NoBody), "s", "", nil)
		require.NoError(t, err)
		defer f.Close()
		require.True(t, f.Send("1", "output", []byte("{}")))
	})
}

// deadlines is a recorder that streams.
type deadlines struct{ *httptest.ResponseRecorder }

func (*deadlines) FlushError() error                { return nil }
func (*deadlines) SetWriteDeadline(time.Time) error { return nil }

func TestI2AnIDFromBeforeARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(true)
		b := onTape(t, p, sse.Config{})
		c := b.connect("session=s", "")
		addTo(b.Hub, "s", "1", "2", "3", "4", "5")
		c.notices("1", "2", "3", "4", "5")
		b.Withdraw("s", "4")
		c.close()
		synctest.Wait()
		addTo(b.Hub, "s", "6", "7")
		b.Withdraw("s", "7")
		synctest.Wait()
		require.Zero(t, p.waiting())

		b, p = reborn(t, b, p, sse.Config{})
		defer func() { b.end() }()
		o := b.connect("session=s&observe", "e-2")
		o.notices("3", "5", "6")
		o = b.connect("session=s&observe", "")
		o.notices("6")
		o = b.connect("session=s&observe", "e-7")
		o.nothing()
		o = b.connect("session=s&observe", "e-8")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"ahead"}`}, o.next())
		o = b.connect("session=s&observe", "f-2")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"other_epoch"}`}, o.next())

		c = b.connect("session=s", "")
		c.notices("6")
		require.Equal(t, uint64(8), b.Append("s", sse.Notice{Key: "8", Event: "task.done", Data: []byte("8")}), "numbers go on")
		c.notices("8")
		synctest.Wait()
		b, _ = reborn(t, b, p, sse.Config{})
		again := b.connect("session=s", "")
		again.nothing()
		b.connect("session=s", "e-5").notices("6", "8")
	})
}

func TestWhatIsKeptOfALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(true)
		cfg := sse.Config{LogSize: 3, LogMax: 1}
		b := onTape(t, p, cfg)
		add := func(key, owner string) {
			b.Append("s", sse.Notice{Key: key, Owner: owner, Agent: owner, Event: "task.done", Data: []byte(key)})
		}
		for _, key := range []string{"1", "2", "3"} {
			add(key, "a")
		}
		add("4", "b") // 1 is given up
		b.Hold("s", "3")
		synctest.Wait()
		b, p = reborn(t, b, p, cfg)
		o := b.connect("session=s&observe", "")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"undelivered"}`}, o.next())
		o.notices("2", "4", "3") // the hold has ended with the hub, under a new number
		o = b.connect("session=s&observe", "e-0")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, o.next())
		c := b.connect("session=s&agent=b", "")
		c.notices("4")
		synctest.Wait()

		b, p = reborn(t, b, p, cfg)
		c = b.connect("session=s&agent=a", "")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"undelivered"}`}, c.next())
		c.notices("2", "3")
		require.Equal(t, "e-5", c.lastID)
		synctest.Wait()

		b, p = reborn(t, b, p, cfg)
		c = b.connect("session=s", "")
		c.nothing()
		c.close()
		synctest.Wait()
		add("5", "c")
		add("6", "c")
		b.DropOwner("s", "c")
		add("7", "c")
		b.Hold("s", "7")
		b.Due("s", "7")
		synctest.Wait()
		rows, _ := p.state()
		require.Len(t, rows, 2)
		require.Equal(t, uint64(9), rows[1].Number)
		<-time.After(25 * time.Hour)
		synctest.Wait()
		rows, marks := p.state()
		require.Len(t, rows, 1, "they age")
		require.Equal(t, uint64(5), marks["s"].Evicted)

		b, p = reborn(t, b, p, sse.Config{LogSize: 3, LogMax: 1, LogAge: time.Minute})
		c = b.connect("session=s", "")
		c.notices("7")
		require.Equal(t, "e-9", c.lastID)
		synctest.Wait()
		p = p.crash()
		b.end()
		<-time.After(time.Minute)
		b = onTape(t, p, sse.Config{LogSize: 3, LogMax: 1, LogAge: time.Minute})
		synctest.Wait()
		rows, marks = p.state()
		require.Empty(t, rows, "age goes on while nobody is there")
		require.Equal(t, sse.SessionMark{Session: "s", Last: 9, Evicted: 9, Lost: map[string]string{}}, marks["s"])
		require.Equal(t, uint64(10), b.Append("s", sse.Notice{Key: "9"}))
		b.end()
	})
}

func TestASmallerLogKeepsThePendingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(true)
		b := onTape(t, p, sse.Config{})
		c := b.connect("session=s", "")
		addTo(b.Hub, "s", "1", "2")
		c.notices("1", "2")
		c.close()
		synctest.Wait()
		addTo(b.Hub, "s", "3", "4")
		synctest.Wait()
		b, _ = reborn(t, b, p, sse.Config{LogSize: 2, LogMax: 1})
		defer b.end()
		c = b.connect("session=s", "e-1")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, c.next())
		c.notices("3", "4")
	})
}

// A notice whose row was lost is announced again, one whose row was kept is not.
func TestANoticeIsAnnouncedAgainOnlyIfItWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(false)
		b := onTape(t, p, sse.Config{})
		addTo(b.Hub, "s", "1", "2", "3")
		p.write(3) // the epoch and two
		c := b.connect("session=s", "")
		c.notices("1", "2")
		synctest.Wait()
		p.write(2) // the third, and that the first was written
		c.notices("3")
		synctest.Wait()

		b, p = reborn(t, b, p, sse.Config{})
		defer b.end()
		for i, key := range []string{"1", "2", "3", "4"} {
			require.Equal(t, uint64(i+1), b.Append("s", sse.Notice{Key: key, Event: "task.done", Data: []byte(key)}))
		}
		require.Equal(t, uint64(4), b.Append("s", sse.Notice{Key: "4"}), "also while it waits")
		require.Equal(t, uint64(5), b.Append("s", sse.Notice{Event: "task.done", Data: []byte("5")}))
		require.Equal(t, uint64(6), b.Append("s", sse.Notice{Event: "task.done", Data: []byte("6")}), "without a key each is its own")
		p.write(-1)
		c = b.connect("session=s", "")
		c.notices("2", "3", "4", "5", "6") // at least once, under the same numbers
		b.connect("session=s", "e-3").notices("4", "5", "6")
	})
}

func TestANumberThatNobodySawIsGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(false)
		b := onTape(t, p, sse.Config{})
		p.write(-1)
		c := b.connect("session=s", "")
		addTo(b.Hub, "s", "lost")
		c.nothing()
		b, p = reborn(t, b, p, sse.Config{})
		defer b.end()
		addTo(b.Hub, "s", "1")
		p.write(-1)
		b.connect("session=s", "e-0").notices("1")
	})
}

func TestDueIsOneStep(t *testing.T) {
	for n := range 3 { // calls that are kept: neither, the hold, and its end
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTape(false)
				b := onTape(t, p, sse.Config{})
				addTo(b.Hub, "s", "1", "2")
				p.write(-1)
				b.Hold("s", "1")
				b.Due("s", "1")
				require.Equal(t, 2, p.waiting())
				c := b.connect("session=s&observe", "")
				p.write(n)
				if n == 2 {
					c.notices("2", "1")
				}
				c.nothing() // else who resumes behind 2 would never hear of 1
				b, p = reborn(t, b, p, sse.Config{})
				defer b.end()
				p.write(-1)
				c = b.connect("session=s", "")
				if n == 0 {
					c.notices("1", "2")
				} else {
					c.notices("2", "1")
				}
				c.nothing()
			})
		})
	}
}

// TestI1AHeldNoticeOutlivesTheHub: whoever resumes behind the number of a notice that was
// held when the hub ended hears of it, under a new number. Streams pass over it only once
// the journal knows.
func TestI1AHeldNoticeOutlivesTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(false)
		b := onTape(t, p, sse.Config{})
		addTo(b.Hub, "s", "1", "2")
		p.write(-1)
		b.Hold("s", "1")
		b.Hold("s", "1")
		require.Equal(t, 1, p.waiting())
		c := b.connect("session=s", "")
		c.nothing()
		p.write(-1)
		c.notices("2")
		synctest.Wait()
		require.Equal(t, "e-2", c.lastID)
		b, p = reborn(t, b, p, sse.Config{}) // that 2 was carried is not kept
		defer b.end()
		p.write(-1)
		c = b.connect("session=s", "e-2")
		c.notices("1")
		require.Equal(t, "e-3", c.lastID)
		c.nothing()
	})
}

// TestI1AReportOutlivesTheHubOrIsForgotten: streams pass over a notice that was withdrawn only
// once the journal knows: behind a crash it is pending again, and must be heard of.
func TestI1AReportOutlivesTheHubOrIsForgotten(t *testing.T) {
	for name, withdraw := range map[string]func(h *sse.Hub){
		"reported":  func(h *sse.Hub) { h.Withdraw("s", "1") },
		"ownerless": func(h *sse.Hub) { h.DropOwner("s", "a#1") },
		"twice":     func(h *sse.Hub) { h.Hold("s", "1"); h.Due("s", "1"); h.Withdraw("s", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTape(false)
				b := onTape(t, p, sse.Config{})
				b.Append("s", sse.Notice{Key: "1", Owner: "a#1", Agent: "a", Event: "task.done", Data: []byte("1")})
				b.Append("s", sse.Notice{Key: "2", Owner: "b#1", Agent: "b", Event: "task.done", Data: []byte("2")})
				p.write(-1)
				withdraw(b.Hub)
				all, other := b.connect("session=s", ""), b.connect("session=s&agent=b&observe", "")
				other.notices("2") // what is another agent's holds up nobody
				all.nothing()
				b, _ = reborn(t, b, p, sse.Config{}) // nothing of it is kept
				defer b.end()
				b.connect("session=s", all.lastID).notices("1", "2")
			})
		})
	}
}
