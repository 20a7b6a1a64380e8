package sse_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

func until(d time.Duration) string {
	return fmt.Sprint("&until=", time.Now().Add(d).UnixMilli())
}

func TestI3AnEndAfterALongSilenceArrivesOnTheOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{})
		defer b.end()
		c := b.connect("session=s", "")
		last := time.Now()
		for range 20 {
			e := <-c.events
			require.Equal(t, event{Comment: "heartbeat"}, e)
			require.LessOrEqual(t, time.Since(last), 15*time.Second)
			last = time.Now()
		}
		addTo(b.Hub, "s", "late")
		before := time.Now()
		c.notices("late")
		require.Zero(t, time.Since(before))
	})
}

func TestI6AStreamEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{Heartbeat: time.Second})
		defer b.end()
		begin := time.Now()
		c := b.connect("session=s"+until(3*time.Second), "")
		addTo(b.Hub, "s", "1")
		c.notices("1")
		require.Equal(t, event{ID: "e-1", Name: "bye", Data: `{"reason":"token_expired"}`}, c.next())
		require.Equal(t, 3*time.Second, time.Since(begin))
		addTo(b.Hub, "s", "2")
		c.ended()
		require.Zero(t, b.Streams())

		again := b.connect("session=s", "")
		again.notices("2")

		late := b.connect("session=s"+until(-time.Hour), "e-1")
		require.Equal(t, event{Name: "bye", Data: `{"reason":"token_expired"}`}, late.next(), "nothing before the bye")
		late.ended()
	})
}

func TestAStuckStreamDoesNotOutliveItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{WriteTimeout: time.Hour})
		defer b.end()
		dial(t, b.http, "http://afoot/?session=s"+until(3*time.Second), "")
		addTo(b.Hub, "s", strings.Repeat("x", 100_000))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, b.Streams())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, b.Streams())
	})
}

func TestChangesAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{Heartbeat: time.Hour})
		defer b.end()
		all := b.connect("session=s", "")
		one := b.connect("session=s&agent=x", "")
		observer := b.connect("session=s&observe", "")
		other := b.connect("session=other", "")
		nobody := b.connect("", "")
		require.Equal(t, 5, b.Streams())
		got := func(c *client) (data []string) {
			time.Sleep(time.Second)
			synctest.Wait()
			for len(c.events) > 0 {
				e := <-c.events
				require.Equal(t, "tasks.changed", e.Name)
				require.Empty(t, e.ID)
				data = append(data, e.Data)
			}
			return data
		}

		begin := time.Now()
		for range 50 {
			b.Poke("s", "x")
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, event{Name: "tasks.changed", Data: `{"agent":"x"}`}, all.next())
		require.Equal(t, 100*time.Millisecond, time.Since(begin))
		require.Equal(t, []string{`{"agent":"x"}`}, got(one))
		require.Equal(t, []string{`{"agent":"x"}`}, got(observer))
		require.Empty(t, got(all))

		b.Poke("s", "x")
		b.Poke("s", "y")
		b.Poke("s", "x")
		require.Equal(t, []string{`{"agent":"x"}`, `{"agent":"y"}`}, got(all), "one per agent")
		require.Equal(t, []string{`{"agent":"x"}`}, got(one))

		b.Poke("s", "y")
		b.Poke("s", "")
		require.Equal(t, []string{`{}`}, got(all), "anything includes all agents")
		require.Equal(t, []string{`{}`}, got(one))

		for i := range 20 {
			b.Poke("s", strconv.Itoa(i))
		}
		require.Equal(t, []string{`{}`}, got(all), "too many to tell apart")

		got(one)
		got(observer)
		require.Empty(t, got(other))
		require.Empty(t, got(nobody))

		for range 50 {
			b.PokeAll("")
			time.Sleep(time.Millisecond)
		}
		b.Poke("s", "y")
		require.Equal(t, []string{`{}`}, got(other))
		require.Equal(t, []string{`{}`}, got(nobody))
		require.Equal(t, []string{`{}`}, got(one))
		require.Equal(t, []string{`{}`}, got(all), "one for both")

		b.Poke("", "x")
		b.Poke("nobody-home", "x")
		require.Empty(t, got(nobody))
	})
}

func TestASessionlessStreamCarriesChangesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{})
		defer b.end()
		require.Zero(t, b.Append("", sse.Notice{Event: "task.done", Data: []byte("1")}))
		c := b.connect("", "e-99")
		addTo(b.Hub, "s", "1")
		b.PokeAll("")
		require.Equal(t, event{Name: "tasks.changed", Data: "{}"}, c.next())
	})
}

// The client of these streams reads nothing, and the network holds no byte.
func TestASlowStreamGetsOneChangeAndOneHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{WriteTimeout: time.Hour, Heartbeat: time.Second})
		defer b.end()
		c := dial(t, b.http, "http://afoot/?session=s", "")
		addTo(b.Hub, "s", strings.Repeat("x", 100_000))
		for i := range 100 {
			b.Poke("s", fmt.Sprint("agent-", i%2))
			time.Sleep(time.Second)
		}
		var got []event
		go func() { _ = parse(c.resp.Body, func(e event) { got = append(got, e) }) }()
		synctest.Wait()
		require.Len(t, got, 3)
		require.Equal(t, "task.done", got[0].Name)
		require.Equal(t, event{ID: "e-1", Name: "tasks.changed", Data: "{}"}, got[1])
		require.Equal(t, event{Comment: "heartbeat"}, got[2])
	})
}

func TestI5AStalledStreamIsCutAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{WriteTimeout: 5 * time.Second, MaxStreamsPerSession: 2})
		defer b.end()
		dial(t, b.http, "http://afoot/?session=s", "")
		big := strings.Repeat("x", 100_000)
		addTo(b.Hub, "s", big)
		synctest.Wait()

		healthy := b.connect("session=s", "")
		before := time.Now()
		addTo(b.Hub, "s", "2", "3")
		healthy.notices(big, "2", "3")
		require.Zero(t, time.Since(before), "the one that is stuck delays nobody")
		refused := dial(t, b.http, "http://afoot/?session=s", "")
		require.Equal(t, http.StatusTooManyRequests, refused.resp.StatusCode)

		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, b.Streams(), "cut by the write time-out")
		again := b.connect("session=s", "e-0")
		again.notices(big, "2", "3")
	})
}

func TestAnEventThatGotStuckIsStillPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{WriteTimeout: time.Second})
		defer b.end()
		dial(t, b.http, "http://afoot/?session=s", "")
		addTo(b.Hub, "s", "1")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, b.Streams())
		b.connect("session=s", "").notices("1")
	})
}

func TestAStreamThatFellBehindTheLogIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{WriteTimeout: time.Hour, LogSize: 3, LogMax: 1})
		defer b.end()
		slow := dial(t, b.http, "http://afoot/?session=s", "")
		filtered := dial(t, b.http, "http://afoot/?session=s&agent=other", "")
		healthy := b.connect("session=s", "")
		for _, d := range []string{"1", "2", "3", "4", "5"} {
			addTo(b.Hub, "s", d)
			healthy.notices(d)
		}
		var got []event
		go func() { _ = parse(slow.resp.Body, func(e event) { got = append(got, e) }) }()
		synctest.Wait()
		require.Equal(t, []event{
			{ID: "e-1", Name: "task.done", Data: "1"},
			{ID: "e-1", Name: "bye", Data: `{"reason":"lagged"}`},
		}, got)
		require.Equal(t, 2, b.Streams())

		c := b.connect("session=s", "e-1")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, c.next())
		b.Append("s", sse.Notice{Key: "6", Owner: "o", Agent: "other", Event: "task.done", Data: []byte("6")})
		c.notices("6")
		go func() { _ = parse(filtered.resp.Body, func(e event) { filtered.events <- e }) }()
		filtered.notices("6")
	})
}

func TestWhatAnOpenStreamStillWantsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{WriteTimeout: time.Hour, LogSize: 3, LogMax: 8})
		defer b.end()
		slow := dial(t, b.http, "http://afoot/?session=s", "")
		quick := b.connect("session=s", "")
		for _, d := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			addTo(b.Hub, "s", d)
			quick.notices(d)
		}
		b.connect("session=s", "e-1").notices("2", "3") // the slow one has 1 on its way
		go func() { _ = parse(slow.resp.Body, func(e event) { slow.events <- e }) }()
		slow.notices("1", "2", "3", "4", "5", "6", "7", "8")
		synctest.Wait()
		addTo(b.Hub, "s", "9")
		late := b.connect("session=s", "e-5")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, late.next())
	})
}

func TestPendingNoticesGoBeyondTheSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{LogSize: 2, LogMax: 4})
		defer b.end()
		addTo(b.Hub, "s", "1", "2", "3", "4")
		c := b.connect("session=s&observe", "")
		c.notices("1", "2", "3", "4")
		c.close()
		addTo(b.Hub, "s", "5")
		c = b.connect("session=s", "")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"undelivered"}`}, c.next())
		c.notices("2", "3", "4", "5")
	})
}

func TestUndeliveredNoticesThatWereGivenUpAreAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{LogSize: 2, LogMax: 1})
		defer b.end()
		addTo(b.Hub, "s", "1", "2", "3")
		for range 2 {
			c := b.connect("session=s&observe", "")
			require.Equal(t, event{Name: "gap", Data: `{"reason":"undelivered"}`}, c.next())
			c.notices("2", "3")
			c.close()
		}
		c := b.connect("session=s", "")
		require.Equal(t, "gap", c.next().Name)
		c.notices("2", "3")
		addTo(b.Hub, "s", "4")
		b.connect("session=s", "").close()
		c.notices("4")
		synctest.Wait()
		again := b.connect("session=s", "")
		addTo(b.Hub, "s", "5")
		again.notices("5")
	})
}

func TestWrittenNoticesAgeWhileNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{})
		defer b.end()
		addTo(b.Hub, "s", "1", "2")
		time.Sleep(30 * time.Minute)
		c := b.connect("session=s", "")
		c.notices("1", "2")
		c.close()
		synctest.Wait()
		time.Sleep(24*time.Hour - time.Minute)
		c = b.connect("session=s", "e-0")
		c.notices("1", "2")
		c.close()
		time.Sleep(2 * time.Minute) // to the minute, whenever the log is swept
		c = b.connect("session=s", "e-0")
		require.Equal(t, event{Name: "gap", Data: `{"reason":"evicted"}`}, c.next())
		c.close()
		synctest.Wait()

		// The session holds nothing now, but its numbers go on.
		require.Equal(t, uint64(3), b.Append("s", sse.Notice{Event: "task.done", Data: []byte("3")}))
		c = b.connect("session=s", "e-2")
		c.notices("3")
	})
}
