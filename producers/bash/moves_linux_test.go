package bash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"afoot/producers/output"
	"afoot/producers/proc"
	"afoot/registry"
)

// asMover makes this program one that runs many tasks and execs itself under them.
const (
	asMover      = "BASH_TEST_AS_MOVER"
	moverState   = "BASH_TEST_MOVER_STATE"
	moverGrace   = 4 * time.Second
	inputBytes   = 300_000
	moverPatient = 60 * time.Second
	// moverSlack is what a busy machine adds: a task waits while an image begins.
	moverSlack = 30 * time.Second
)

// script says what a mover does.
type script struct {
	Dir, Net string
	Seed     uint64
	// Execs counts how often it replaces itself, Backs how often it takes back before.
	Execs, Backs int
	Tasks        int
}

// mover is one task of a mover, in all its images.
type mover struct {
	Sort   string
	N      int
	Handle json.RawMessage // of a live or ended run
	Live   bool
	// Outcome is there when it has ended.
	Outcome *registry.Outcome
	// Began is when it was started, Ended when it was settled, by [proc.Clock].
	Began, Asked, Ended int64
	// Written counts what stdin took.
	Written int

	run     *run
	settled chan struct{}
	input   sync.WaitGroup
	cancel  context.CancelFunc
	stopped <-chan struct{}
}

type theater struct {
	script   script
	random   *rand.Rand
	store    *output.Store
	sink     *output.Sink
	producer *Producer
	tasks    []*mover
	wrong    []string
}

// passed is what passes the exec.
type passed struct {
	Script         script
	Producer, Sink json.RawMessage
	Tasks          []*mover
}

func (m *theater) fail(t *mover, format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf("%s %d: ", t.Sort, t.N)+fmt.Sprintf(format, args...))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func move(text string) int {
	m := &theater{}
	if fd := os.Getenv(moverState); fd == "" {
		if err := json.Unmarshal([]byte(text), &m.script); err != nil {
			panic(err)
		}
		m.random = rand.New(rand.NewPCG(m.script.Seed, 0))
		m.open(nil, nil)
		m.begin()
	} else {
		m.arrive(must(strconv.Atoi(fd)))
	}
	for m.script.Backs > 0 {
		m.script.Backs--
		m.pause(60)
		m.handOver()
		m.pause(20)
		m.takeBack()
	}
	if m.script.Execs > 0 {
		m.script.Execs--
		m.pause(300)
		m.depart()
	}
	m.finish()
	for _, line := range m.wrong {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(m.wrong) > 0 {
		return 1
	}
	return 0
}

func (m *theater) open(producer, sink json.RawMessage) {
	m.store = must(output.NewStore(output.Config{Dir: filepath.Join(m.script.Dir, "output"), MaxBytes: 1 << 20}))
	if sink == nil {
		m.sink = must(output.NewSink())
	} else {
		m.sink = must(output.AdoptSink(sink))
	}
	m.producer = must(New(Config{
		Env: os.Environ(), Workdir: m.script.Dir, Grace: moverGrace, Net: m.script.Net, Store: m.store, Sink: m.sink,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), Adopt: producer,
	}))
}

func (t *mover) launch() registry.Launch {
	t.settled = make(chan struct{})
	return registry.Launch{
		ID: registry.ID(fmt.Sprintf("bash-%d", t.N)), Owner: registry.Owner{Session: "s", Agent: "a", Incarnation: 1},
		Settle: func(o registry.Outcome, broken error) {
			if broken != nil {
				o.Detail += " BROKEN " + broken.Error()
			}
			t.Outcome, t.Ended = &o, proc.Clock(time.Now())
			close(t.settled)
		},
	}
}

// pause lets the tasks get somewhere, nobody knows where.
func (m *theater) pause(most int) {
	<-time.After(time.Duration(m.random.IntN(most)) * time.Millisecond)
}

// begin starts the tasks, and what some of them go through.
func (m *theater) begin() {
	var names []string
	for name := range sorts() {
		names = append(names, name)
	}
	for n := range m.script.Tasks {
		t := &mover{Sort: names[n%len(names)], N: n, Began: proc.Clock(time.Now())}
		data := must(json.Marshal(sorts()[t.Sort](n)))
		plan := must(m.producer.Prepare(context.Background(), registry.Spec{Kind: Kind, Fields: data}))
		t.run = must(plan.Start(context.Background(), t.launch())).(*run)
		m.tasks = append(m.tasks, t)
	}
	for _, t := range m.tasks {
		switch t.Sort {
		case "trap", "deaf":
			m.await(t, "up\n")
			t.Asked = proc.Clock(time.Now())
			if err := t.run.Cancel(""); err != nil {
				panic(err)
			}
		case "input":
			m.feed(t)
		case "ghost":
			<-t.settled
			t.Asked = proc.Clock(time.Now())
			t.stopped = t.run.StopLeftovers("")
		}
	}
}

func (m *theater) await(t *mover, text string) {
	for at := int64(0); ; {
		grown := t.run.Grown(at)
		if strings.Contains(show(t.run), text) {
			return
		}
		<-grown
		at, _ = t.run.Size()
	}
}

func show(s registry.Stream) string {
	all, at := "", int64(0)
	for {
		page, err := s.Page(at, registry.MaxPageBytes)
		if err != nil {
			return "READ " + err.Error()
		}
		if all += page.Text; page.NextOffset == at {
			return all
		}
		at = page.NextOffset
	}
}

// feed gives stdin what it has not taken yet.
func (m *theater) feed(t *mover) {
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(context.Background())
	t.input.Go(func() {
		got, err := t.run.Input(ctx, typed()[t.Written:], true)
		t.Written += got.Written
		if err != nil {
			panic(err)
		}
	})
}

func (m *theater) handOver() (producer, sink json.RawMessage) {
	for _, t := range m.tasks {
		handle, err := t.run.HandOver()
		if t.Live = err == nil; !t.Live {
			if !errors.Is(err, registry.ErrEnded) {
				panic(err)
			}
			<-t.settled
			handle = must(t.run.Handle())
		}
		t.Handle = handle
		t.input.Wait()
	}
	return must(m.producer.HandOver()), must(m.sink.HandOver())
}

func (m *theater) takeBack() {
	m.producer.TakeBack()
	m.sink.TakeBack()
	for _, t := range m.tasks {
		if t.Live {
			t.run.TakeBack()
		}
		if t.Sort == "input" && t.Written < len(typed()) {
			m.feed(t)
		}
	}
}

func (m *theater) depart() {
	s := passed{Script: m.script, Tasks: m.tasks}
	s.Producer, s.Sink = m.handOver()
	file := os.NewFile(uintptr(must(unix.MemfdCreate("state", 0))), "state")
	must(file.Write(must(json.Marshal(s))))
	must(file.Seek(0, io.SeekStart))
	env := append(os.Environ(), fmt.Sprintf("%s=%d", moverState, file.Fd()))
	panic(syscall.Exec(must(os.Executable()), os.Args, env))
}

func (m *theater) arrive(fd int) {
	file := os.NewFile(uintptr(fd), "state")
	var s passed
	if err := json.Unmarshal(must(io.ReadAll(file)), &s); err != nil {
		panic(err)
	}
	_ = file.Close()
	if err := os.Unsetenv(moverState); err != nil {
		panic(err)
	}
	m.script, m.tasks = s.Script, s.Tasks
	m.random = rand.New(rand.NewPCG(m.script.Seed, uint64(m.script.Execs+1)))
	m.open(s.Producer, s.Sink)
	for _, t := range m.tasks {
		if t.Live {
			t.run = must(m.producer.Adopt(t.Handle, t.launch())).(*run)
		} else {
			t.run = must(m.producer.Restore(t.Handle)).(*run)
			t.settled = make(chan struct{})
			close(t.settled)
		}
		if t.Sort == "input" && t.Written < len(typed()) {
			m.feed(t)
		}
	}
	must(m.store.Sweep())
}

// finish waits for all ends and looks at what they are.
func (m *theater) finish() {
	over := time.After(moverPatient)
	for _, t := range m.tasks {
		select {
		case <-t.settled:
			m.check(t)
		case <-over:
			m.fail(t, "does not end; output %.100q", show(t.run))
			over = time.After(0)
		}
		if t.cancel != nil {
			t.cancel()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), moverPatient)
	defer cancel()
	if err := m.producer.Close(ctx); err != nil {
		m.wrong = append(m.wrong, "close: "+err.Error())
	}
	if err := errors.Join(m.sink.Close(), m.store.Close()); err != nil {
		m.wrong = append(m.wrong, "close: "+err.Error())
	}
}

func movingNets(t *testing.T) []string {
	t.Helper()
	nets := []string{"subreaper", "group"}
	host, err := proc.NewHost(proc.Config{Net: "cgroup"})
	if err != nil {
		t.Log("no control groups here: ", err)
		return nets
	}
	require.NoError(t, host.Close())
	return append(nets, "cgroup")
}

// While tasks of all sorts run, print, are stopped, time out, are typed to and leave
// processes behind, the program execs itself, and takes it back too. Every byte is there
// in its order, every exit is true, stops and time-outs come when they should, leftovers
// live and are stoppable.
func TestTasksGoOnAcrossAnExec(t *testing.T) {
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("BASH_TEST_ROUNDS")); err == nil {
		rounds = n
	}
	for _, net := range movingNets(t) {
		for round := range rounds {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%s/%d", net, round), func(t *testing.T) {
				text, err := json.Marshal(script{Dir: t.TempDir(), Net: net, Seed: seed, Execs: 1 + round%3, Backs: round % 3, Tasks: 56})
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 2*moverPatient)
				defer cancel()
				cmd := exec.CommandContext(ctx, must(os.Executable()), "mover")
				cmd.Env = append(os.Environ(), asMover+"="+string(text))
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s\n%s", text, out)
				require.NotContains(t, string(out), "level=ERROR")
			})
		}
	}
}
