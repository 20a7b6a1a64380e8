package sse_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

func numbers(from, to int) (data []string) {
	for n := from; n <= to; n++ {
		data = append(data, strconv.Itoa(n))
	}
	return data
}

func TestI1ResumeAfterACut(t *testing.T) {
	h := newHouse(t, sse.Config{})
	h.add("s", numbers(1, 3)...)
	c := h.connect("s", "")
	c.notices(numbers(1, 3)...)
	c.close()
	h.streams(0)
	h.add("s", numbers(4, 8)...)
	c = h.connect("s", c.lastID)
	c.notices(numbers(4, 8)...)
	h.add("s", "9")
	c.notices("9")
	require.Equal(t, "e-9", c.lastID)
}

// The client got the line with the id but not the end of the event, so for it
// the event did not happen, whatever the server knows.
func TestI1CutBetweenIDAndBlankLine(t *testing.T) {
	h := newHouse(t, sse.Config{})
	h.add("s", numbers(1, 5)...)
	conn, err := net.Dial("tcp", h.server.Listener.Addr().String())
	require.NoError(t, err)
	_, err = fmt.Fprint(conn, "GET /?session=s HTTP/1.1\r\nHost: afoot\r\n\r\n")
	require.NoError(t, err)
	lines := bufio.NewReader(conn)
	for line := ""; line != "id: e-4\n"; {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close())

	c := h.connect("s", "e-3")
	c.notices("4", "5")
	h.add("s", "6")
	c.notices("6")
}

func TestI2IDsThatCannotBePlaced(t *testing.T) {
	h := newHouse(t, sse.Config{LogSize: 5, LogMax: 1, Epoch: "now"})
	c := h.connect("s", "")
	for _, d := range numbers(1, 8) {
		h.add("s", d)
		c.notices(d)
	}
	h.recorded("s", c)
	c.close()
	h.streams(0)
	h.add("s", "9")
	for _, x := range []struct{ name, id, reason string }{
		{"evicted", "now-3", sse.GapEvicted},
		{"too large", "now-10", sse.GapAhead},
		{"another epoch", "then-9", sse.GapOtherEpoch},
		{"word", "abc", sse.GapNotAnID},
		{"long", strings.Repeat("9", 10<<10), sse.GapNotAnID},
		{"long number", "now-" + strings.Repeat("9", 10<<10), sse.GapAhead},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := connect(t, h.server.Client(), h.url("s", "observe", ""), x.id)
			require.Equal(t, event{Name: "gap", Data: `{"reason":"` + x.reason + `"}`}, c.next())
			c.notices("9")
			c.close()
		})
	}
	c = h.connect("s", "now-5")
	c.notices(numbers(6, 9)...)
}

func TestI2ANewEpochForgetsOldIDs(t *testing.T) {
	before, after := sse.NewHub(sse.Config{}), newHouse(t, sse.Config{Epoch: "not usable\n"})
	require.NoError(t, before.Close(t.Context(), sse.ByeShutdown))
	after.add("s", "1")
	c := after.connect("s", "")
	c.notices("1")
	epoch, _, found := strings.Cut(c.lastID, "-")
	require.True(t, found)
	require.Len(t, epoch, 26)
	other := newHouse(t, sse.Config{Epoch: "-"})
	require.Equal(t, event{Name: "gap", Data: `{"reason":"other_epoch"}`}, other.connect("s", c.lastID).next())
}

func TestH3AnotherSessionsIDIsAGap(t *testing.T) {
	h := newHouse(t, sse.Config{})
	h.add("a", numbers(1, 3)...)
	b := h.connect("b", "e-3")
	require.Equal(t, event{Name: "gap", Data: `{"reason":"ahead"}`}, b.next())
	h.add("b", "own")
	b.notices("own")
	require.Equal(t, "e-1", b.lastID)
	h.connect("a", "").notices(numbers(1, 3)...)
}

func TestH4AReportedOneIsNeitherDeliveredNorReplayed(t *testing.T) {
	h := newHouse(t, sse.Config{})
	h.add("s", "1", "2", "3", "4")
	h.Withdraw("s", "1")
	c := h.connect("s", "")
	c.notices("2", "3", "4")
	h.Withdraw("s", "3")
	h.Withdraw("nobody", "3")
	c.close()
	c = h.connect("s", "e-1")
	c.notices("2", "4")
	c.close()
	h.streams(0)
	h.add("s", "5")
	h.DropOwner("s", "a#1")
	c = h.connect("s", "e-4")
	h.add("s", "6")
	c.notices("6")
}

func TestH6APendingNoticeComesOnce(t *testing.T) {
	h := newHouse(t, sse.Config{})
	for i := range 50 {
		session := fmt.Sprint("s", i)
		h.add(session, "1")
		first := h.connect(session, "")
		first.notices("1")
		again := h.connect(session, first.lastID)
		h.recorded(session, first)
		anew := h.connect(session, "")
		h.add(session, "2")
		first.notices("2")
		require.Equal(t, "tasks.changed", again.next().Name)
		again.notices("2")
		anew.notices("2")
		first.close()
		again.close()
		anew.close()
	}
}

func TestObserversDeliverNothing(t *testing.T) {
	h := newHouse(t, sse.Config{})
	h.add("s", "1")
	o := h.connect("s", "", "observe", "")
	o.notices("1")
	h.add("s", "2")
	o.notices("2")
	require.Equal(t, "e-2", o.lastID)
	h.connect("s", "", "observe", "").notices("1", "2")
	c := h.connect("s", "")
	c.notices("1", "2")
	h.recorded("s", c)
	o2 := h.connect("s", "", "observe", "")
	h.add("s", "3")
	o2.notices("3")
}

func TestAgentFilter(t *testing.T) {
	h := newHouse(t, sse.Config{})
	add := func(agent, data string) {
		h.Append("s", sse.Notice{Key: data, Owner: agent, Agent: agent, Event: "task.done", Data: []byte(data)})
	}
	add("a", "1")
	add("b", "2")
	a := h.connect("s", "", "agent", "a")
	a.notices("1")
	h.recorded("s", a)
	add("b", "3")
	add("a", "4")
	a.notices("4")
	require.Equal(t, "e-4", a.lastID)
	h.recorded("s", a)
	h.connect("s", "").notices("2", "3") // b's are still due
	h.connect("s", "e-1", "agent", "b").notices("2", "3")
}

// TestStreamsWithoutASession: they are counted for each caller, and all hear of changes.
func TestStreamsWithoutASession(t *testing.T) {
	h := newHouse(t, sse.Config{MaxStreamsPerSession: 1})
	alice := h.connect("", "", "caller", "alice")
	h.connect("alice", "")
	bob := h.connect("", "", "caller", "bob")
	for _, caller := range []string{"alice", "bob"} {
		refused := dial(t, h.server.Client(), h.url("", "caller", caller), "")
		require.Equal(t, http.StatusTooManyRequests, refused.resp.StatusCode)
	}
	h.PokeAll("")
	require.Equal(t, "tasks.changed", alice.next().Name)
	require.Equal(t, "tasks.changed", bob.next().Name)
}

func TestTooManyStreams(t *testing.T) {
	h := newHouse(t, sse.Config{MaxStreamsPerSession: 2})
	h.connect("s", "")
	second := h.connect("s", "", "observe", "")
	refused := dial(t, h.server.Client(), h.url("s"), "")
	require.Equal(t, http.StatusTooManyRequests, refused.resp.StatusCode)
	require.NotEqual(t, "text/event-stream", refused.resp.Header.Get("Content-Type"))
	require.Equal(t, 2, h.Streams())
	h.connect("other", "")
	second.close()
	h.streams(2)
	h.connect("s", "")
	h.SetMaxStreamsPerSession(3)
	h.connect("s", "")
	h.SetMaxStreamsPerSession(1)
	require.Equal(t, 4, h.Streams(), "open ones stay")
	refused = dial(t, h.server.Client(), h.url("s"), "")
	require.Equal(t, http.StatusTooManyRequests, refused.resp.StatusCode)
}

// TestAnotherFilterBehindACrash: who resumes with a wider filter than before does not have
// what that lets through.
func TestAnotherFilterBehindACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTape(true)
		b := onTape(t, p, sse.Config{})
		for _, key := range []string{"a", "b", "a2"} {
			b.Append("s", sse.Notice{Key: key, Agent: key[:1], Event: "task.done", Data: []byte(key)})
		}
		synctest.Wait()
		p.auto = false
		c := b.connect("session=s&agent=b", "")
		c.notices("b")
		b, _ = reborn(t, b, p, sse.Config{})
		defer b.end()
		wide := b.connect("session=s", c.lastID)
		wide.notices("a2")
		wide.close()
		synctest.Wait()
		wide = b.connect("session=s", wide.lastID)
		wide.nothing()
		b.connect("session=s", "").notices("a")
	})
}
