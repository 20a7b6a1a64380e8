package bash

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"afoot/producers/output"
	"afoot/registry"
)

func TestMain(m *testing.M) {
	if script := os.Getenv(asMover); script != "" {
		os.Exit(move(script))
	}
	goleak.VerifyTestMain(m)
}

// stand is a producer with all it stands on.
type stand struct {
	*Producer
	t    testing.TB
	sink *output.Sink
}

// patient gives who is told to end all the time to do so.
func patient(c *Config) { c.Grace = time.Hour }

// drained awaits output for ever.
func drained(c *Config) { c.Drain = time.Hour }

func newStand(t testing.TB, change ...func(*Config)) *stand {
	t.Helper()
	store, err := output.NewStore(output.Config{Dir: t.TempDir(), MaxBytes: 8 << 20})
	require.NoError(t, err)
	sink, err := output.NewSink()
	require.NoError(t, err)
	config := Config{
		Env:     os.Environ(),
		Workdir: t.TempDir(),
		Grace:   300 * time.Millisecond,
		Store:   store,
		Sink:    sink,
	}
	for _, c := range change {
		c(&config)
	}
	producer, err := New(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, producer.Close(ctx))
		require.NoError(t, sink.Close())
		require.NoError(t, store.Close())
	})
	return &stand{Producer: producer, t: t, sink: sink}
}

// task is a started run and its end.
type task struct {
	*run
	t       testing.TB
	settled chan registry.Outcome
	broken  error
}

type fields map[string]any

func (s *stand) prepare(f fields) (registry.Plan, error) {
	data, err := json.Marshal(f)
	require.NoError(s.t, err)
	return s.Prepare(context.Background(), registry.Spec{Kind: Kind, Fields: data})
}

func (s *stand) start(f fields) *task {
	s.t.Helper()
	plan, err := s.prepare(f)
	require.NoError(s.t, err)
	k := &task{t: s.t, settled: make(chan registry.Outcome, 1)}
	started, err := plan.Start(context.Background(), registry.Launch{
		ID:    "bash-1",
		Owner: registry.Owner{Session: "s", Agent: "a", Incarnation: 1},
		Settle: func(o registry.Outcome, broken error) {
			k.broken = broken
			k.settled <- o
		},
	})
	require.NoError(s.t, err)
	k.run = started.(*run)
	return k
}

func (s *stand) run(command string) *task {
	s.t.Helper()
	return s.start(fields{"command": command})
}

// end waits for the outcome.
func (k *task) end() registry.Outcome {
	k.t.Helper()
	select {
	case o := <-k.settled:
		require.NoError(k.t, k.broken)
		return o
	case <-time.After(30 * time.Second):
		k.t.Fatal("the task does not end")
		panic("unreachable")
	}
}

// output gives all there is, as text.
func (k *task) output() string {
	k.t.Helper()
	page, err := k.Page(0, registry.MaxPageBytes)
	require.NoError(k.t, err)
	return page.Text
}

// has waits until the output holds a text.
func (k *task) has(text string) {
	k.t.Helper()
	for at := int64(0); ; {
		grown := k.Grown(at)
		if strings.Contains(k.output(), text) {
			return
		}
		select {
		case <-grown:
			at, _ = k.Size()
		case <-time.After(30 * time.Second):
			k.t.Fatalf("output %q does not come", text)
		}
	}
}

// pid reads a number from a line of the output.
func (k *task) pid(line int) int {
	k.t.Helper()
	pid, err := strconv.Atoi(strings.Split(k.output(), "\n")[line])
	require.NoError(k.t, err)
	return pid
}

// alive decides by the state letter: signals reach zombies too.
func alive(pid int) bool {
	letter := state(pid)
	return letter != 0 && letter != 'Z' && letter != 'X'
}

// state gives the letter; 0 for a process that is not there.
func state(pid int) byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	line := string(data)
	return line[strings.LastIndexByte(line, ')')+2]
}

func requireSameJSON(t testing.TB, want string, got json.RawMessage) {
	t.Helper()
	require.JSONEq(t, want, string(got))
}
