package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"afoot/api/wire"
	"afoot/producers/bash"
	"afoot/producers/output"
	"afoot/registry"
)

// realBash puts real commands into the place of the scripted ones.
func (w *world) realBash(grace time.Duration) {
	w.t.Helper()
	store, err := output.NewStore(output.Config{Dir: w.t.TempDir(), MaxBytes: 8 << 20})
	w.is.NoError(err)
	sink, err := output.NewSink()
	w.is.NoError(err)
	producer, err := bash.New(bash.Config{
		Env: os.Environ(), Workdir: w.t.TempDir(), Grace: grace, Store: store, Sink: sink,
	})
	w.is.NoError(err)
	w.service.AttachProducer("bash", producer)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		w.is.NoError(w.service.Close(ctx))
		w.is.NoError(producer.Close(ctx))
		w.is.NoError(sink.Close())
		w.is.NoError(store.Close())
	})
}

// TestRealCommands: the tools with commands that run.
func TestRealCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.api.Tools.ResultBytes = 1000 })
	w.realBash(time.Minute)
	for _, c := range []struct{ command, more, want string }{
		{`echo hi`, ``, "hi\n"},
		{`true`, ``, "(no output)"},
		{`printf hi; exit 3`, ``, "hi\n[exit code: 3]"},
		{`echo hi; kill -KILL $$`, ``, "hi\n[killed by signal: SIGKILL]"},
		{`echo hi; sleep 60`, `,"timeout_ms":3000`, "hi\n[timed out after 3000ms]"},
		{`pwd`, `,"workdir":"/"`, "/\n"},
		{`echo quick`, `,"yield_ms":60000`, "quick\n"},
	} {
		command, err := json.Marshal(c.command)
		w.is.NoError(err)
		a := w.use("bash", `{"command":`+string(command)+`,"description":"d"`+c.more+`}`)
		w.is.Equal(c.want, a.text(), c.command)
		w.is.Equal("foreground", a.Value["kind"])
	}
	long := w.use("bash", `{"command":"seq 1 1000; exit 1","description":"d"}`)
	id := long.Value["task"].(map[string]any)["id"].(string)
	address := w.server.URL + "/tasks/" + id + "/log"
	w.is.True(strings.HasSuffix(long.text(), "\n999\n1000\n[output truncated; full output: "+address+"]\n[exit code: 1]"), long.text())
	w.is.LessOrEqual(len(long.text()), 1000)
	w.is.Len(w.get(strings.TrimPrefix(address, w.server.URL)).ok(http.StatusOK).body, 3893)
	w.is.Contains(w.use("bash", `{"command":"true","description":"d","workdir":"/nowhere"}`).text(), "/nowhere")
	w.is.Equal("(no background tasks)", w.use("task_list", `{}`).text())

	started := w.use("bash", `{"command":"echo up; sleep 60","description":"a server","run_in_background":true}`)
	server := started.Value["taskId"].(string)
	w.is.Equal("started background task "+server, started.text())
	w.eventually(func() bool { return w.snapshot(registry.ID(server)).OutputBytes == 3 }, "it prints")
	w.is.Equal(server+" [bash] running — a server", w.use("task_list", `{}`).text())
	w.is.Equal("requested cancellation of task "+server, w.use("task_kill", `{"task_id":"`+server+`"}`).text())
	w.is.Equal("up\n[status: killed, signal: SIGTERM]", w.use("task_output", `{"task_id":"`+server+`","wait":true}`).text())
}

// TestRealCommandEndsWithItsCaller: all of its processes do, TERM first, KILL then; what
// it printed can still be read.
func TestRealCommandEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.realBash(3 * time.Second) // for the handler to print
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	script := `trap "echo asked" TERM; (trap "" TERM; sleep 1000) & echo ready; while :; do wait; done`
	command, err := json.Marshal(script)
	w.is.NoError(err)
	r := w.request(ctx, http.MethodPost, "/tools/bash", `{"command":`+string(command)+`,"description":"d"}`)
	done := make(chan error, 1)
	go func() {
		res, err := w.server.Client().Do(r)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	w.eventually(func() bool {
		s, err := w.service.Get(context.Background(), registry.Caller{Session: "alice"}, "bash-1")
		return err == nil && s.OutputBytes == int64(len("ready\n"))
	}, "it is ready")
	cancel()
	w.is.Error(<-done)
	w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "it has ended")
	s := w.snapshot("bash-1")
	w.is.Equal(registry.StatusKilled, s.Status)
	w.is.Equal("signal: SIGKILL", s.Detail)
	w.is.JSONEq(`{"signal":"SIGKILL"}`, string(s.Result), "nothing is left")
	w.is.Equal("ready\nasked\n", into[wire.TaskRead](w.get("/tasks/bash-1/output?offset=0")).Text)
}
