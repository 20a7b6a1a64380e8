package sse_test

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// listener is a client of the session, over many connections.
type listener struct {
	agent    string
	observes bool
	c        *client
	wire     *wire
	// ids are what it has seen, the newest last; last is the number on this connection.
	ids  []string
	last uint64
	// has is what it was told, and spared what it is not owed: what others were told before
	// it came, and what a gap stands for.
	has, spared map[string]bool
}

func (li *listener) query() string {
	q := "session=s"
	if li.agent != "" {
		q += "&agent=" + li.agent
	}
	if li.observes {
		q += "&observe"
	}
	return q
}

// lastID is the newest id that it has seen, or an earlier one; empty for none.
func (li *listener) lastID(back int) string {
	if len(li.ids) == 0 {
		return ""
	}
	return li.ids[max(0, len(li.ids)-1-back)]
}

func (li *listener) cares(e *end) bool { return li.agent == "" || li.agent == e.agent }

// wire is a connection on which flushes get stuck, when the client has everything already.
type wire struct {
	http.ResponseWriter
	sticks chan error // nil: flushes are quick
}

func (w *wire) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *wire) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if err == nil && w.sticks != nil {
		err = <-w.sticks
	}
	return err
}

func (w *wire) stick() {
	if w.sticks == nil {
		w.sticks = make(chan error, 1)
	}
}

// free lets the flush that is stuck end, and all that follow.
func (w *wire) free(err error) {
	if stuck := w.sticks; stuck != nil {
		w.sticks = nil
		if err != nil {
			stuck <- err
		}
		close(stuck)
	}
}

var errCut = errors.New("cut")

// connect begins a new connection, at the place of an id that the listener has seen.
func (l *life) connect(li *listener, id string) {
	l.cut(li, errCut)
	l.listen()
	if li.last = 0; id == "" {
		li.ids = nil
		l.spare(li, func(e *end) bool { return len(l.told[e.key]) > 0 || l.gap[e.key] })
	}
	l.dialing = li
	li.c = l.b.connect(li.query(), id)
}

// turn has a listener care for others. It is not owed what there is: it may resume behind
// what it did not ask for, or has not got yet.
func (l *life) turn(li *listener, agent string) {
	l.cut(li, errCut)
	l.spare(li, func(*end) bool { return true })
	li.agent = agent
}

func (l *life) spare(li *listener, which func(*end) bool) {
	for _, e := range l.a.ends {
		li.spared[e.key] = li.spared[e.key] || which(e)
	}
}

// cut ends a connection; err is what the server learns of a flush that is stuck.
func (l *life) cut(li *listener, err error) {
	if li.c == nil {
		return
	}
	l.hear(li)
	if li.c != nil && li.wire.sticks != nil {
		for _, e := range l.a.ends { // behind what was stuck more may be on its way, to nobody
			e.flown = true
		}
	}
	li.wire.free(err)
	if li.c != nil {
		li.c.close()
		li.c = nil
	}
	synctest.Wait()
}

func (l *life) listen() {
	synctest.Wait()
	for _, li := range l.all {
		l.hear(li)
	}
}

// hear takes in what has come.
func (l *life) hear(li *listener) {
	for li.c != nil {
		select {
		case e, open := <-li.c.events:
			if !open {
				li.c = nil
				li.wire.free(nil)
				return
			}
			l.heard(li, e)
			continue
		default:
		}
		return
	}
}

// heard judges one event. Ids rise, and mean one notice for ever.
func (l *life) heard(li *listener, ev event) {
	switch ev.Name {
	case "gap":
		require.Less(l.rt, l.cfg.LogSize, 1000, "nothing was evicted: %v", ev)
		li.last = 0
		l.spare(li, func(*end) bool { return true })
		for _, e := range l.a.ends {
			l.gap[e.key] = l.gap[e.key] || !li.observes && li.cares(e)
		}
	case "task.done":
		n, err := strconv.ParseUint(strings.TrimPrefix(ev.ID, "e-"), 10, 64)
		require.NoError(l.rt, err)
		require.Greater(l.rt, n, li.last)
		if key, known := l.carried[n]; known {
			require.Equal(l.rt, key, ev.Data, "number %d", n)
		}
		e := l.a.find(ev.Data)
		require.True(l.rt, li.cares(e))
		l.judge(li, e, n)
		li.ids, li.last, l.carried[n], li.has[e.key] = append(li.ids, ev.ID), n, ev.Data, true
		if !li.observes && !slices.Contains(l.told[e.key], n) {
			l.told[e.key] = append(l.told[e.key], n)
		}
	}
}

func (l *life) judge(li *listener, e *end, n uint64) {
	require.False(l.rt, e.withdrawn, "%s is withdrawn", e.key)
	told := l.told[e.key]
	if len(told) == 0 {
		require.False(l.rt, e.lastWord, "the owner of %s is gone", e.key)
	}
	if l.asked && !e.gone {
		require.False(l.rt, e.reported, "%s is reported", e.key)
		require.True(l.rt, len(told) > 0 || e.flown || e.claims == 0, "an answer with %s is on its way", e.key)
	}
	if !li.observes {
		require.True(l.rt, len(told) == 0 || slices.Contains(told, n) || l.cfg.LogSize < 1000, "%s is told as %d, and was as %v", e.key, n, told)
	}
}
