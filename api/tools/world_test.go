package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"afoot/api/tools"
	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files anew")

var errBoom = errors.New("boom")

// world is a registry with scripted work of the kind bash, and the tools before it.
type world struct {
	t       *testing.T
	is      *require.Assertions
	service *inmem.Service
	jobs    *registrytest.Producer
	set     *tools.Set

	mu      sync.Mutex
	next    registrytest.Script
	notices []registry.Snapshot
}

// inBubble runs a case in virtual time.
func inBubble(t *testing.T, run func(w *world), change ...func(*tools.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, is: require.New(t), jobs: registrytest.NewProducer()}
		w.service = inmem.New(inmem.Config{MaxTasksPerOwner: 4})
		w.service.AttachController("test", registry.AllOwners())
		w.service.AttachProducer("bash", scripted{w})
		w.service.OnDone(registry.AllOwners(), func(n registry.Notice) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notices = append(w.notices, n.Snapshot)
		})
		cfg := tools.Config{Service: w.service, Background: true}
		for _, c := range change {
			c(&cfg)
		}
		var err error
		w.set, err = tools.New(cfg)
		w.is.NoError(err)
		run(w)
		w.jobs.Retire()
		w.is.NoError(w.service.Close(context.Background()))
	})
}

// scripted starts the next script of its world, whatever the command.
type scripted struct{ w *world }

func (p scripted) Prepare(ctx context.Context, spec registry.Spec) (registry.Plan, error) {
	p.w.mu.Lock()
	fields := p.w.jobs.Fields(p.w.next)
	p.w.mu.Unlock()
	if rest, ok := bytes.CutPrefix(spec.Fields, []byte("{")); ok && len(rest) > 1 {
		fields = append(append(bytes.TrimSuffix(fields, []byte("}")), ','), rest...)
	}
	spec.Fields = fields
	return p.w.jobs.Prepare(ctx, spec)
}

// script is what the next start does.
func (w *world) script(s registrytest.Script) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = s
}

func (w *world) told() []registry.Snapshot {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notices
}

func alice() registry.Caller { return registry.Caller{Session: "alice"} }

// start starts a background task beside the tools, with a limit, 0 for none.
func (w *world) start(s registrytest.Script, limit int64) *registrytest.Work {
	w.t.Helper()
	w.script(s)
	spec := registry.Spec{Kind: "bash"}
	if limit > 0 {
		spec.OutputLimitBytes = &limit
	}
	started, err := w.service.Start(context.Background(), alice(), registry.StartRequest{Spec: spec})
	w.is.NoError(err)
	return w.jobs.Work(started.Snapshot.ID)
}

// finishing settles the work of its start at once, with a result.
func finishing(output string, status registry.Status, detail, result string) registrytest.Script {
	return registrytest.Script{Start: func(_ context.Context, work *registrytest.Work) error {
		work.Output.Append(output)
		work.Settle(registry.Outcome{Status: status, Detail: detail, Result: json.RawMessage(result)})
		return nil
	}}
}

func (w *world) do(ctx context.Context, name, arguments string, change ...func(*tools.Call)) (*tools.Answer, error) {
	w.t.Helper()
	call := tools.Call{Caller: alice(), Name: name, Arguments: json.RawMessage(arguments), Writes: true}
	for _, c := range change {
		c(&call)
	}
	answer, err := w.set.Call(ctx, call)
	if err == nil {
		w.t.Helper()
		w.fits(name, answer)
	}
	return answer, err
}

// call makes a call that is answered and whose answer arrives.
func (w *world) call(name, arguments string, change ...func(*tools.Call)) *tools.Answer {
	w.t.Helper()
	answer, err := w.do(context.Background(), name, arguments, change...)
	w.is.NoError(err)
	w.is.NoError(answer.Confirm())
	return answer
}

// failed makes a call whose tool fails, and gives the text.
func (w *world) failed(name, arguments string, change ...func(*tools.Call)) string {
	w.t.Helper()
	answer := w.call(name, arguments, change...)
	w.is.True(answer.IsError, answer.Text)
	return answer.Text
}

// well makes a call that goes well.
func (w *world) well(name, arguments string, change ...func(*tools.Call)) *tools.Answer {
	w.t.Helper()
	answer := w.call(name, arguments, change...)
	w.is.False(answer.IsError, answer.Text)
	return answer
}

// going is a call under way.
type going struct {
	w      *world
	cancel context.CancelFunc
	done   chan struct{}
	answer *tools.Answer
	err    error
}

func (w *world) begin(name, arguments string) *going {
	ctx, cancel := context.WithCancel(context.Background())
	g := &going{w: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		g.answer, g.err = w.do(ctx, name, arguments)
	}()
	synctest.Wait()
	return g
}

func (g *going) returned() bool {
	synctest.Wait()
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

func (g *going) wait() *tools.Answer {
	g.w.t.Helper()
	<-g.done
	g.cancel()
	g.w.is.NoError(g.err)
	return g.answer
}

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }

// fits holds an answer against the tool's published output schema.
func (w *world) fits(name string, answer *tools.Answer) {
	w.t.Helper()
	if answer.IsError {
		w.is.Nil(answer.Value)
		w.is.NotEmpty(answer.Text)
		return
	}
	for _, d := range w.set.Definitions(true) {
		if d.Name != name {
			continue
		}
		schema, err := d.Output.Resolve(nil)
		w.is.NoError(err)
		data, err := json.Marshal(answer.Value)
		w.is.NoError(err)
		var value any
		w.is.NoError(json.Unmarshal(data, &value))
		w.is.NoError(schema.Validate(value), "%s", data)
		return
	}
	w.t.Fatalf("no tool %s", name)
}

// value gives the value as its client sees it.
func value[T any](w *world, answer *tools.Answer) T {
	w.t.Helper()
	v, ok := answer.Value.(T)
	w.is.True(ok, "%T", answer.Value)
	return v
}

// accepts reports whether an input schema takes arguments.
func accepts(t *testing.T, d tools.Definition, arguments string) bool {
	t.Helper()
	schema, err := d.Input.Resolve(&jsonschema.ResolveOptions{})
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal([]byte(arguments), &v))
	return schema.Validate(v) == nil
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func quote(b *strings.Builder, what string, limit int64, text string) {
	fmt.Fprintf(b, "%s limit=%d bytes=%d %q\n", what, limit, len(text), text)
}
