package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Whatever its users were told before the daemon died, at any instant of any of its
// lives, holds in the next one, and none of its processes outlives it for long.
//
// AFOOT_E2E_ROUNDS sets how many times it dies, AFOOT_E2E_SEED repeats a script.
func TestCrash(t *testing.T) {
	t.Parallel()
	w := newCrasher(t)
	for life := range rounds(t, 8) {
		w.live(life)
	}
	w.rest()
}

// rounds is how many rounds a test of many lives has.
func rounds(t *testing.T, short int) int {
	t.Helper()
	text := os.Getenv("AFOOT_E2E_ROUNDS")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "AFOOT_E2E_ROUNDS")
	return n
}

// seeded gives the seed of a random script and prints it.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("AFOOT_E2E_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "AFOOT_E2E_SEED")
	}
	fmt.Fprintf(os.Stderr, "%s: AFOOT_E2E_SEED=%d\n", t.Name(), seed)
	t.Logf("AFOOT_E2E_SEED=%d", seed)
	return seed
}

// crasher is a daemon that lives many times, and those who use it.
type crasher struct {
	t       *testing.T
	d       *daemon
	seed    uint64
	r       *rand.Rand // of the test's goroutine
	nets    []string
	net     string
	parties []*party

	reloading bool        // it is never killed, but reloads
	enough    atomic.Bool // it has done so often enough

	life    int
	inOrder map[int]bool   // the lives that were ended by SIGTERM
	length  string         // of the sleeps of this life
	how     syscall.Signal // that ends it
	dying   atomic.Bool    // it was sent, or is about to be
	// left is how many answers may still come before it is sent.
	left atomic.Int64

	mu    sync.Mutex
	shown map[string]uint64 // the highest number that anybody was told, by kind
	given map[string]bool   // the ids
}

func newCrasher(t *testing.T) *crasher {
	t.Helper()
	seed := seeded(t)
	w := &crasher{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), nets: availableNets(t), shown: map[string]uint64{}, given: map[string]bool{}, inOrder: map[int]bool{}}
	w.d = prepare(t, "AFOOT_KILL_GRACE=300ms", "AFOOT_MAX_TASKS_PER_OWNER=60", "AFOOT_MAX_STREAMS_PER_SESSION=64",
		"AFOOT_RETAIN_COUNT=100000", "AFOOT_LOG_LEVEL=info")
	for i := range 3 {
		p := &party{w: w, c: w.d.as(fmt.Sprintf("crash-%d", i)), name: fmt.Sprintf("crash-%d", i)}
		p.init()
		w.parties = append(w.parties, p)
	}
	return w
}

// live is one life: from its start, at which it may die several times, to its end.
func (w *crasher) live(life int) {
	t := w.t
	w.life, w.length = life, odd(t)
	w.net = w.nets[w.r.IntN(len(w.nets))]
	w.d.env = append(w.d.env, "AFOOT_NET="+w.net)
	w.d.env = append(w.d.env, "AFOOT_SYNC="+[]string{"normal", "normal", "full"}[w.r.IntN(3)])
	w.d.nextLife(life)
	for w.r.IntN(3) == 0 {
		w.stillborn()
	}
	w.d.again()
	watchdogs := w.d.watchdogs()
	require.Len(t, watchdogs, 1, "one for the whole daemon")
	w.dying.Store(false)
	w.left.Store(1 << 30)
	w.how = syscall.SIGKILL
	if w.r.IntN(6) == 0 {
		w.how, w.inOrder[life] = syscall.SIGTERM, true
	}
	w.each((*party).check)

	// It ends at a random moment, or with a random answer.
	patience := time.Duration(100+w.r.IntN(500)) * time.Millisecond
	if w.r.IntN(3) > 0 {
		w.left.Store(int64(1 + w.r.IntN(60)))
	}
	timer := time.AfterFunc(patience, w.end)
	defer timer.Stop()
	w.each((*party).act)
	w.end()
	require.True(t, w.d.waitExit(20*time.Second))
	died := time.Now()
	for _, p := range w.parties {
		p.listenToTheEnd()
	}
	if w.how == syscall.SIGTERM {
		require.Equal(t, 0, w.d.cmd.ProcessState.ExitCode())
		require.Empty(t, w.d.ofLife(life), "left by a daemon that ended in order")
	}
	alone := w.r.IntN(2) == 0
	if !alone {
		w.stillborn()
	}
	var left []process
	var sleepers []int
	watched := false
	defer func() {
		if t.Failed() {
			t.Logf("life %d, net %s, %s: left are %v and %v; its watchdog lives: %v", life, w.net, w.how, left, sleepers, watched)
		}
	}()
	eventually(t, max(time.Until(died.Add(orphaned)), 0), "nothing is left of the dead daemon", func() bool {
		left, sleepers, watched = w.d.ofLife(life), asleep(w.length), living(watchdogs[0])
		return len(left)+len(sleepers) == 0 && !watched
	})
}

// stillborn starts the daemon and kills it before it can be ready.
func (w *crasher) stillborn() {
	w.d.launch()
	timer := time.NewTimer(time.Duration(w.r.IntN(400)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.d.exited:
		require.FailNow(w.t, "the daemon does not start", w.d.logTail(4000))
	}
	w.d.die(w.t)
}

// end sends the signal, once in a life.
func (w *crasher) end() {
	if w.reloading {
		w.enough.Store(true)
		return
	}
	if w.dying.CompareAndSwap(false, true) {
		_ = w.d.cmd.Process.Signal(w.how)
	}
}

// answered counts an answer that came, whole.
func (w *crasher) answered() {
	if w.left.Add(-1) == 0 {
		w.end()
	}
}

// each lets all users do the same at once.
func (w *crasher) each(do func(*party) error) {
	w.t.Helper()
	var g errgroup.Group
	for _, p := range w.parties {
		g.Go(func() error {
			if err := do(p); err != nil {
				return fmt.Errorf("life %d, %s: %w", w.life, p.name, err)
			}
			return nil
		})
	}
	require.NoError(w.t, g.Wait(), "AFOOT_E2E_SEED=%d", w.seed)
}

// rest looks at everything once more in a last life, or in a later part of the only one.
func (w *crasher) rest() {
	w.life++
	if !w.reloading {
		w.d.again()
	}
	w.dying.Store(false)
	w.left.Store(1 << 30)
	for _, p := range w.parties {
		for _, f := range p.tasks {
			f.touched = true
		}
	}
	w.each((*party).check)
	for _, p := range w.parties {
		p.stream.cut()
		require.NoError(w.t, p.hear())
		require.Equal(w.t, http.StatusOK, p.c.do(w.t, http.MethodGet, "/tasks", nil).status)
	}
	w.d.stop()
}

// floor is the number beyond which the next one of a kind is.
func (w *crasher) floor(kind string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown[kind]
}

// fresh checks an id that nobody may have been told before, in no life.
func (w *crasher) fresh(id string, floor uint64) error {
	kind, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n <= floor {
		return fmt.Errorf("%s comes after %d was shown", id, floor)
	}
	if w.given[id] {
		return fmt.Errorf("%s comes twice", id)
	}
	w.given[id] = true
	w.shown[kind] = max(w.shown[kind], n)
	return nil
}
