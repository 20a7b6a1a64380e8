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
	for left := true; left; {
		l.p.write(-1)
		l.listen()
		left = l.a.tell()
	}
	l.p.write(-1)
	l.listen()
	l.p.write(-1)
}

func newLife(t *testing.T, rt *rapid.T) *life {
	l := &life{
		t: t, rt: rt, p: newTape(false), asked: rapid.Bool().Draw(rt, "asked"),
		cfg:     sse.Config{LogSize: rapid.SampledFrom([]int{2, 4, 1000}).Draw(rt, "size"), LogMax: rapid.SampledFrom([]int{1, 8, 2000}).Draw(rt, "most")},
		carried: map[uint64]string{}, told: map[string][]uint64{}, gap: map[string]bool{},
		all: []*listener{{}, {}, {agent: "a"}, {agent: "b"}, {observes: true}, {observes: true, agent: "a"}},
	}
	for _, li := range l.all {
		li.has, li.spared, li.ids = map[string]bool{}, map[string]bool{}, []string{"e-0"}
	}
	l.p.auto = rapid.Bool().Draw(rt, "auto")
	l.a = &authority{p: l.p, owners: map[string]int{}}
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

func (l *life) actions() map[string]func(*rapid.T) {
	agent := func(rt *rapid.T) string { return rapid.SampledFrom(agents()).Draw(rt, "agent") }
	// some gives an end, mostly a new one, that is not gone.
	some := func(rt *rapid.T, do func(*end)) {
		if n := len(l.a.ends); n > 0 {
			if e := l.a.ends[n-1-rapid.IntRange(0, n-1).Draw(rt, "end")]; !e.gone {
				do(e)
			}
		}
	}
	under := func(do func(*end)) func(e *end) {
		return func(e *end) {
			if e.claims > 0 {
				do(e)
			}
		}
	}
	who := func(rt *rapid.T) *listener { return l.all[rapid.IntRange(0, len(l.all)-1).Draw(rt, "who")] }
	on := func(rt *rapid.T, do func(*listener)) {
		if li := who(rt); li.c != nil {
			do(li)
		}
	}
	err := func(rt *rapid.T) error { return rapid.SampledFrom([]error{nil, errCut}).Draw(rt, "err") }
	return map[string]func(*rapid.T){
		"settle":  func(rt *rapid.T) { l.a.settle(agent(rt), rapid.SampledFrom([]int{0, 0, 1}).Draw(rt, "waiters")) },
		"begin":   func(rt *rapid.T) { some(rt, l.a.begin) },
		"lose":    func(rt *rapid.T) { some(rt, under(l.a.lose)) },
		"deliver": func(rt *rapid.T) { some(rt, under(l.a.deliver)) },
		"ack":     func(rt *rapid.T) { some(rt, l.a.deliver) },
		"evict":   func(rt *rapid.T) { some(rt, l.a.evict) },
		"dispose": func(rt *rapid.T) { l.a.dispose(agent(rt)) },
		"tell": func(rt *rapid.T) {
			for range rapid.SampledFrom([]int{1, 2, 100}).Draw(rt, "changes") {
				if !l.a.tell() {
					return
				}
				l.listen()
			}
		},
		"write":   func(rt *rapid.T) { l.p.write(rapid.IntRange(1, 5).Draw(rt, "calls")) },
		"all":     func(*rapid.T) { l.p.write(-1) },
		"connect": func(rt *rapid.T) { l.connect(who(rt), "") },
		"resume": func(rt *rapid.T) {
			li, id := who(rt), ""
			if n := len(li.ids); n > 0 {
				id = li.ids[n-1-rapid.IntRange(0, min(2, n-1)).Draw(rt, "back")]
			}
			l.connect(li, id)
		},
		"cut":   func(rt *rapid.T) { on(rt, func(li *listener) { l.cut(li, err(rt)) }) },
		"stick": func(rt *rapid.T) { on(rt, func(li *listener) { li.wire.stick() }) },
		"free":  func(rt *rapid.T) { on(rt, func(li *listener) { li.wire.free(err(rt)) }) },
		"crash": func(rt *rapid.T) {
			l.p.write(rapid.IntRange(0, 3).Draw(rt, "calls"))
			l.restart()
		},
		"": func(*rapid.T) { l.listen() },
	}
}

// judgeAll is the end of a life in which all is well, and one more life later.
func (l *life) judgeAll() {
	l.calm()
	for _, li := range l.all {
		id := ""
		if n := len(li.ids); n > 0 {
			id = li.ids[n-1]
		}
		l.connect(li, id)
	}
	l.calm()
	for _, li := range l.all {
		for _, e := range l.a.ends {
			require.True(l.rt, !li.cares(e) || e.reported || e.gone || li.has[e.key] || li.spared[e.key], "%s was not told on %s", e.key, li.query())
		}
	}
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
