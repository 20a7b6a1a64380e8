package sse_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"afoot/sse"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// life is a hub on a tape, with an authority that keeps its facts on the same
// tape, and one client that resumes.
type life struct {
	t   *testing.T
	rt  *rapid.T
	cfg sse.Config
	p   *tape
	b   *bubble
	c   *client

	keys int
	// appended and reported are what the authority knows; again has the keys that
	// may come under a second number: they were held once.
	appended, reported, again map[string]bool
	// carried is what each number meant, and numbers where each key was seen.
	carried map[uint64]string
	numbers map[string][]uint64
	lastID  string
	last    uint64
	// gap says that notices were given up; then one may be missing.
	gap bool
}

// announce is what an authority does: the hub is told first, the fact comes behind
// it in the same line.
func (l *life) announce(key string) {
	l.appended[key] = true
	l.b.Append("s", sse.Notice{Key: key, Owner: "a#1", Agent: "a", Event: "task.done", Data: []byte(key)})
	l.p.fact("heard " + key)
}

// report puts the fact in front.
func (l *life) report(key string) {
	l.reported[key] = true
	l.p.fact("reported " + key)
	l.b.Withdraw("s", key)
}

func (l *life) connect(resume bool) {
	l.cut()
	id := ""
	if resume {
		id = l.lastID
	} else {
		l.last = 0
	}
	l.c = l.b.connect("session=s", id)
}

// listen takes in what has come. Ids rise, and mean one notice for ever.
func (l *life) listen() {
	synctest.Wait()
	if l.c == nil {
		return
	}
	for {
		select {
		case e, open := <-l.c.events:
			if !open {
				l.c = nil
				return
			}
			l.heard(e)
			continue
		default:
		}
		return
	}
}

func (l *life) heard(e event) {
	switch e.Name {
	case "gap":
		require.Less(l.rt, l.cfg.LogSize, 1000, "nothing was evicted: %v", e)
		l.gap, l.last = true, 0
	case "task.done":
		n, err := strconv.ParseUint(strings.TrimPrefix(e.ID, "e-"), 10, 64)
		require.NoError(l.rt, err)
		require.Greater(l.rt, n, l.last)
		if key, known := l.carried[n]; known {
			require.Equal(l.rt, key, e.Data, "number %d", n)
		}
		require.False(l.rt, l.reported[e.Data], "%s is reported", e.Data)
		l.last, l.lastID, l.carried[n] = n, e.ID, e.Data
		if !slices.Contains(l.numbers[e.Data], n) {
			l.numbers[e.Data] = append(l.numbers[e.Data], n)
		}
	}
}

func (l *life) cut() {
	if l.c != nil {
		l.listen()
	}
	if l.c != nil {
		l.c.close()
		l.c = nil
	}
	synctest.Wait()
}

// restart is a crash, or with everything written an orderly end. The authority
// takes up what it has on tape, and makes the hub true to it.
func (l *life) restart() {
	l.listen()
	l.p = l.p.crash()
	l.b.end()
	l.listen()
	l.cut()
	l.b = onTape(l.t, l.p, l.cfg)
	for key := range l.appended {
		l.reported[key] = l.p.is("reported " + key)
	}
	for _, key := range l.known() {
		if l.reported[key] {
			l.b.Withdraw("s", key)
		} else if !l.p.is("heard " + key) {
			l.announce(key)
		}
	}
}

func (l *life) known() []string {
	keys := make([]string, 0, len(l.appended))
	for key := range l.appended {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// TestACrashBetweenAnyTwoCalls holds a hub against what its clients were told, in
// lives that end at any moment.
func TestACrashBetweenAnyTwoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			l := &life{
				t: t, rt: rt, p: newTape(false),
				cfg:      sse.Config{LogSize: rapid.SampledFrom([]int{2, 4, 1000}).Draw(rt, "size"), LogMax: rapid.SampledFrom([]int{1, 8, 2000}).Draw(rt, "most")},
				appended: map[string]bool{}, reported: map[string]bool{}, again: map[string]bool{},
				carried: map[uint64]string{}, numbers: map[string][]uint64{}, lastID: "e-0",
			}
			l.p.auto = rapid.Bool().Draw(rt, "auto")
			l.b = onTape(t, l.p, l.cfg)
			defer func() {
				l.b.end()
				synctest.Wait()
			}()
			key := func(rt *rapid.T) string { return fmt.Sprint("k", rapid.IntRange(1, l.keys+1).Draw(rt, "key")) }
			due := map[string]bool{}
			rt.Repeat(map[string]func(*rapid.T){
				"announce": func(*rapid.T) {
					l.keys++
					l.announce(fmt.Sprint("k", l.keys))
				},
				"report": func(rt *rapid.T) {
					if k := key(rt); l.appended[k] {
						l.report(k)
					}
				},
				"hold": func(rt *rapid.T) {
					k := key(rt)
					l.b.Hold("s", k)
					l.again[k], due[k] = true, true
				},
				"due": func(rt *rapid.T) {
					k := key(rt)
					l.b.Due("s", k)
					delete(due, k)
				},
				"write":   func(rt *rapid.T) { l.p.write(rapid.IntRange(1, 5).Draw(rt, "calls")) },
				"all":     func(*rapid.T) { l.p.write(-1) },
				"connect": func(*rapid.T) { l.connect(false) },
				"resume":  func(*rapid.T) { l.connect(true) },
				"cut":     func(*rapid.T) { l.cut() },
				"crash": func(rt *rapid.T) {
					l.p.write(rapid.IntRange(0, 3).Draw(rt, "calls"))
					l.restart()
					clear(due)
				},
				"": func(*rapid.T) { l.listen() },
			})

			// All is well in the end, and one more life later.
			for k := range due {
				l.b.Due("s", k)
			}
			l.p.write(-1)
			l.listen()
			l.p.write(-1)
			l.connect(true)
			l.listen()
			l.connect(false)
			l.listen()
			l.cut()
			l.p.write(-1)
			for _, k := range l.known() {
				seen := len(l.numbers[k])
				require.True(rt, l.reported[k] || seen > 0 || l.gap, "%s was never told", k)
				require.True(rt, seen <= 1 || l.again[k] || l.gap, "%s was told as %v", k, l.numbers[k])
			}
			rows, _ := l.p.state()
			for _, row := range rows {
				require.False(rt, l.reported[row.Key], "%s is kept", row.Key)
			}
			l.restart()
			l.b.connect("session=s", "").nothing()
		})
	})
}
