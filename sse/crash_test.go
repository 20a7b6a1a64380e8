package sse_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"afoot/sse"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// life is a hub on a tape, with an authority that keeps its facts on the same
// tape, and listeners that resume.
type life struct {
	t   *testing.T
	rt  *rapid.T
	cfg sse.Config
	p   *tape
	b   *bubble
	a   *authority
	// asked says that the hub asks the authority.
	asked   bool
	all     []*listener
	dialing *listener

	// carried is what each number meant, and told the numbers under which a delivering
	// stream has carried each end. A gap may stand for an end.
	carried map[uint64]string
	told    map[string][]uint64
	gap     map[string]bool
}

func (l *life) open() *sse.Hub {
	if l.p.Epoch() == "" {
		l.p.SetEpoch("e")
	}
	l.cfg.Journal = l.p
	l.b = newBubble(l.t, l.cfg, func(w http.ResponseWriter) http.ResponseWriter {
		l.dialing.wire = &wire{ResponseWriter: w}
		return l.dialing.wire
	})
	if l.asked {
		l.b.Unless(l.a.answered)
	}
	return l.b.Hub
}

// end is that of a process: no connection outlives it, and its tape takes nothing more.
func (l *life) end() {
	l.p = l.p.crash()
	for _, li := range l.all {
		if li.c != nil {
			li.wire.free(errCut)
		}
	}
	l.b.end()
	synctest.Wait()
}

// restart is a crash, or with everything written an orderly end.
func (l *life) restart() {
	l.listen()
	l.end()
	for _, li := range l.all {
		l.cut(li, errCut)
	}
	l.a.restart(l.open(), l.p)
}

// calm is all well: what was under way is over, and whoever listens has what there is.
func (l *life) calm() {
	for _, li := range l.all {
		if li.c != nil {
			li.wire.free(nil)
		}
	}
	for _, e := range l.a.ends {
		for e.claims > 0 {
			l.a.lose(e)
		}
	}
	l.flow()
}

// flow is that all is written, told and heard.
func (l *life) flow() {
	for left := true; left; {
		l.p.write(-1)
		l.listen()
		left = l.a.tell()
	}
	for range 2 {
		l.p.write(-1)
		l.listen()
	}
}

func newLife(t *testing.T, rt *rapid.T) *life {
	t.Helper()
	l := &life{
		t: t, rt: rt, p: newTape(false), asked: rapid.Bool().Draw(rt, "asked"),
		cfg:     sse.Config{LogSize: rapid.SampledFrom([]int{1000, 1000, 2, 4}).Draw(rt, "size"), LogMax: rapid.SampledFrom([]int{1, 8, 2000}).Draw(rt, "most")},
		carried: map[uint64]string{}, told: map[string][]uint64{}, gap: map[string]bool{},
		all: []*listener{{}},
	}
	for range rapid.IntRange(0, 3).Draw(rt, "more") {
		l.all = append(l.all, &listener{
			agent:    rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(rt, "cares"),
			observes: rapid.Bool().Draw(rt, "observes"),
		})
	}
	for _, li := range l.all {
		li.has, li.spared, li.ids = map[string]bool{}, map[string]bool{}, []string{"e-0"}
	}
	l.p.auto = rapid.IntRange(0, 3).Draw(rt, "auto") == 3
	l.a = &authority{p: l.p, owners: map[string]int{}, trouble: rapid.Bool().Draw(rt, "trouble")}
	l.a.hub = l.open()
	return l
}

// TestACrashBetweenAnyTwoCalls holds a hub against what its clients were told, in
// lives that end at any moment.
func TestACrashBetweenAnyTwoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			l := newLife(t, rt)
			defer l.end()
			rt.Repeat(l.actions())
			l.judgeAll()
		})
	})
}

// odds are one in n.
func odds(rt *rapid.T, what string, n int) bool { return rapid.IntRange(1, n).Draw(rt, what) == n }

// some gives an end that is not gone.
func (l *life) some(rt *rapid.T, do func(*end)) {
	if n := len(l.a.ends); n > 0 {
		if e := l.a.ends[rapid.IntRange(0, n-1).Draw(rt, "end")]; !e.gone {
			do(e)
		}
	}
}

func (l *life) actions() map[string]func(*rapid.T) {
	agent := func(rt *rapid.T) string { return rapid.SampledFrom(agents()).Draw(rt, "agent") }
	who := func(rt *rapid.T) *listener { return rapid.SampledFrom(l.all).Draw(rt, "who") }
	// knows has the authority do something, which the hub may learn at once.
	knows := func(do func(rt *rapid.T)) func(*rapid.T) {
		return func(rt *rapid.T) {
			do(rt)
			if rapid.Bool().Draw(rt, "told") {
				l.a.tell()
			}
		}
	}
	return map[string]func(*rapid.T){
		"settle": func(rt *rapid.T) {
			l.a.settle(agent(rt), rapid.SampledFrom([]int{0, 0, 1}).Draw(rt, "waiters"))
			if rapid.Bool().Draw(rt, "calm") {
				l.flow()
			}
		},
		"begin":   knows(func(rt *rapid.T) { l.some(rt, l.a.begin) }),
		"lose":    knows(func(rt *rapid.T) { l.some(rt, l.a.lose) }),
		"deliver": knows(func(rt *rapid.T) { l.some(rt, l.a.deliver) }),
		"gone": knows(func(rt *rapid.T) {
			switch {
			case odds(rt, "evicts", 4):
				l.some(rt, l.a.evict)
			case odds(rt, "disposes", 4):
				l.a.dispose(agent(rt))
			}
		}),
		"tell":  func(*rapid.T) { l.a.tell() },
		"write": func(rt *rapid.T) { l.p.write(rapid.SampledFrom([]int{1, 2, 3, -1}).Draw(rt, "calls")) },
		"connect": func(rt *rapid.T) {
			li, id := who(rt), ""
			if !odds(rt, "anew", 4) {
				id = li.lastID(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "back"))
			}
			if odds(rt, "cares for others", 8) {
				l.turn(li, rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "cares"))
			}
			l.connect(li, id)
		},
		"wire": func(rt *rapid.T) {
			err := rapid.SampledFrom([]error{nil, errCut}).Draw(rt, "err")
			switch li := who(rt); {
			case li.c == nil:
			case odds(rt, "cut", 3):
				l.cut(li, err)
			case li.wire.sticks == nil:
				li.wire.stick()
			default:
				li.wire.free(err)
			}
		},
		"crash": func(rt *rapid.T) {
			l.p.write(rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(rt, "calls"))
			l.restart()
		},
		"": func(*rapid.T) { l.listen() },
	}
}

// judgeAll is the end of a life in which all is well, and one more life later.
func (l *life) judgeAll() {
	l.calm()
	for _, li := range l.all {
		l.connect(li, li.lastID(0))
	}
	l.calm()
	for _, li := range l.all {
		for _, e := range l.a.ends {
			known := li.has[e.key] || li.spared[e.key] || e.over && len(l.told[e.key]) > 0
			require.True(l.rt, known || !li.cares(e) || e.reported || e.gone, "%s was not told on %s", e.key, li.query())
		}
	}
	l.turn(l.all[0], "")
	l.connect(l.all[0], "")
	l.calm()
	for _, e := range l.a.ends {
		require.True(l.rt, e.reported || e.lastWord || len(l.told[e.key]) > 0 || l.gap[e.key], "%s was never told", e.key)
	}
	rows, _ := l.p.state()
	for _, row := range rows {
		e := l.a.find(row.Key)
		require.False(l.rt, e.withdrawn || e.lastWord && row.Written.IsZero(), "%s is kept", row.Key)
	}
	l.restart()
	l.connect(l.all[0], "")
	l.listen()
	l.all[0].c.nothing()
}
