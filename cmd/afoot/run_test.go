package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/api/client"
)

func TestCommandLineReachesTheProgramUnchanged(t *testing.T) {
	for _, args := range [][]string{
		{"a b", "c"},
		{"", "x"},
		{"it's", `"q"`, "$HOME", "`id`", `\`, "!", "*", "a\nb", "ü"},
		{"-n", "--x=y z"},
		{"plain/word.go:1,2@3%4+5"},
		{"=", "#", "~"},
	} {
		line := commandLine(append([]string{"printf", "<%s>\\n"}, args...))
		got, err := exec.Command("bash", "-c", line).Output()
		require.NoError(t, err, line)
		require.Equal(t, "<"+strings.Join(args, ">\n<")+">\n", string(got), line)
	}
	require.Equal(t, "echo $HOME | cat", commandLine([]string{"echo $HOME | cat"}), "one argument is a line for the shell")
}

func TestTaskCode(t *testing.T) {
	for _, c := range []struct {
		result map[string]any
		want   int
	}{
		{map[string]any{"exitCode": 0.0}, 0},
		{map[string]any{"exitCode": 7.0}, 7},
		{map[string]any{"signal": "SIGKILL"}, 137},
		{map[string]any{"signal": "SIGTERM", "timedOut": true}, 143},
		{map[string]any{"signal": "SIGWHAT"}, exitRun},
		{nil, exitRun},
	} {
		require.Equal(t, c.want, taskCode(client.Snapshot{Result: c.result}), c.result)
	}
}

func TestTaskEnv(t *testing.T) {
	a := &app{cfg: &Config{Environ: []string{"HERE=1=2", "EMPTY="}}}
	env, err := a.taskEnv([]string{"A=b=c", "HERE", "EMPTY", "NONE="})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "b=c", "HERE": "1=2", "EMPTY": "", "NONE": ""}, env)
	for _, bad := range []string{"=x", "", "UNSET"} {
		_, err := a.taskEnv([]string{bad})
		require.Error(t, err, bad)
	}
}

// front passes calls on to the daemon.
func (r *rig) front() http.Handler {
	r.t.Helper()
	info, err := readListenInfo(r.state)
	require.NoError(r.t, err)
	at, err := url.Parse(info.URL)
	require.NoError(r.t, err)
	return httputil.NewSingleHostReverseProxy(at)
}

// TestInterruptedStart has Ctrl-C come while the daemon has not answered the start.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	came, goOn := make(chan struct{}, 1), make(chan struct{}, 1)
	pass := r.front()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && req.URL.Path == "/tasks" {
			body, _ := io.ReadAll(req.Body) // behind it the end of the connection is seen
			req.Body = io.NopCloser(bytes.NewReader(body))
			came <- struct{}{}
			select {
			case <-goOn:
			case <-req.Context().Done():
				return
			}
		}
		pass.ServeHTTP(w, req)
	}))
	t.Cleanup(slow.Close)
	r.env = append(r.env, "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "local")))
	begin := func() *background {
		run := r.begin("run", "--addr", slow.URL, "--", "sleep 326; true")
		<-came
		require.NoError(t, run.cmd.Process.Signal(os.Interrupt))
		return run
	}
	run := begin()
	r.eventually("it gives up", func() bool { return strings.Contains(run.errs.String(), "the task may run all the same") })
	require.Equal(t, 130, run.code())
	require.Empty(t, r.tasks())
	run = begin()
	goOn <- struct{}{}
	for tries := 1; run.code() == 130 && tries < 10; tries++ { // not answered within its patience
		run = begin()
		select {
		case goOn <- struct{}{}:
		default: // it has gone on by what the one before left
		}
	}
	require.Equal(t, 143, run.code(), run.errs)
	require.Contains(t, run.errs.String(), "stopping bash-")
}

// What is refused because the daemon is being replaced comes again, and only that.
func TestRunComesAgainWhileTheDaemonIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	var starts, refuse atomic.Int32
	refuse.Store(3)
	pass := r.front()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost || req.URL.Path != "/tasks" || starts.Add(1) > refuse.Load() {
			pass.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		if refuse.Load() > 1 {
			w.Header().Set("Retry-After", "0")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":503,"code":"unavailable","detail":"The daemon leaves."}`)
	}))
	t.Cleanup(front.Close)
	r.env = append(r.env, "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "local")))
	require.Equal(t, "hi\n", r.ok("run", "--addr", front.URL, "--", "echo hi"))
	require.EqualValues(t, 4, starts.Load())
	starts.Store(0)
	refuse.Store(1)
	_, stderr, code := r.afoot("run", "--addr", front.URL, "--", "echo hi")
	require.Equal(t, exitRun, code)
	require.Contains(t, stderr, "The daemon leaves.")
	require.EqualValues(t, 1, starts.Load())
}

// Each kind of call may meet a daemon that is being replaced.
func TestEveryCallComesAgainWhileTheDaemonIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	var calls atomic.Int32
	pass := r.front()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if calls.Add(1)%2 == 0 {
			pass.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":503,"code":"unavailable","detail":"The daemon leaves."}`)
	}))
	t.Cleanup(front.Close)
	r.env = append(r.env, "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "local")))
	_, stderr, code := r.afoot("run", "--addr", front.URL, "--", "echo hi; exit 3")
	require.Equal(t, 3, code, stderr)
	require.Contains(t, r.ok("ls", "--addr", front.URL), "bash-1")
	id := strings.TrimSpace(r.ok("run", "--addr", front.URL, "-d", "--stdin", "open", "--", "read x; sleep 328"))
	r.ok("input", "--addr", front.URL, id, "x")
	require.Contains(t, r.ok("kill", "--addr", front.URL, id), id)
	_, stderr, code = r.afoot("output", "--addr", front.URL, "--wait", id)
	require.Zero(t, code)
	require.Contains(t, stderr, "killed")
}

// TestRunStartsOnceWhereItsAnswerIsLost: the task that was started is the one that is seen.
func TestRunStartsOnceWhereItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	var starts atomic.Int32
	pass := r.front()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && req.URL.Path == "/tasks" && starts.Add(1) <= 2 {
			pass.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	r.env = append(r.env, "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "local")))
	_, stderr, code := r.afoot("run", "--addr", front.URL, "--", "echo hi; exit 4")
	require.Equal(t, 4, code, stderr)
	require.EqualValues(t, 3, starts.Load())
	require.Len(t, r.tasks(), 1)
}

// TestRunHasItsEndWithoutAnAck: a lost ack comes again, and if it stays lost the command
// exits as its task did all the same.
func TestRunHasItsEndWithoutAnAck(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	var acks, lose atomic.Int32
	pass := r.front()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/ack") && acks.Add(1) <= lose.Load() {
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	r.env = append(r.env, "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "local")))
	for _, c := range []struct {
		flags    []string
		lost     int32
		reported bool
	}{
		{nil, 1, true},
		{nil, 1000, false},
		{[]string{"--json"}, 1, true},
		{[]string{"--json"}, 1000, false},
	} {
		acks.Store(0)
		lose.Store(c.lost)
		stdout, stderr, code := r.afoot(append(append([]string{"run", "--addr", front.URL}, c.flags...), "--", "echo hi; exit 3")...)
		require.Equal(t, 3, code, stderr)
		require.Contains(t, stdout, "hi")
		require.Equal(t, !c.reported, strings.Contains(stderr, "may be announced again"), stderr)
		tasks := r.tasks()
		require.Equal(t, c.reported, tasks[len(tasks)-1].Reported)
		require.Greater(t, acks.Load(), int32(1))
	}
}

// TestDaemonThatEndsBeforeItAnswers: that is said, and not only what the network said.
func TestDaemonThatEndsBeforeItAnswers(t *testing.T) {
	gone := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer gone.Close()
	err := discard(http.Get(gone.URL))
	var exit exitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitNoDaemon, exit.code)
	require.ErrorContains(t, err, "the daemon ended before it answered")
}

// TestWaitsAtShutdown: a command that waits asks once more, and is told of the end.
func TestWaitsAtShutdown(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_KILL_GRACE=1s", "AFOOT_LOG_LEVEL=debug")
	r.serve()
	id := strings.TrimSpace(r.ok("run", "-d", "--", `trap "" TERM; while :; do sleep 0.3; done`))
	wait := r.begin("output", "--wait", "--plain", id)
	token := strings.TrimSpace(r.ok("token", "--session", "local"))
	info, err := readListenInfo(r.state)
	require.NoError(t, err)
	r.eventually("it waits", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, info.URL+"/tasks/"+id, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		task, err := decode[client.TaskDescription](http.DefaultClient.Do(req))
		return err == nil && task.Waiters == 1
	})
	r.stop()
	require.Zero(t, wait.code(), wait.errs)
	require.Contains(t, wait.errs.String(), "[status: killed, daemon shut down]")
	require.LessOrEqual(t, strings.Count(r.out.String(), "/output"), 3, "it asked again and again")
}
