package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever sequence of starts, inputs, signals, reads, waits and kills meets real
// processes: at the end none is left, every byte that a command wrote can be read, in
// pieces and as a whole, and each end is told exactly once.
func TestPropertyNothingLeftNothingLost(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_KILL_GRACE=200ms", "AFOOT_MAX_TASKS_PER_OWNER=40", "AFOOT_MAX_AGENTS_PER_SESSION=10", "AFOOT_MAX_STREAMS_PER_SESSION=64")
			dir := t.TempDir()
			n := 0
			rapid.Check(t, func(r *rapid.T) {
				n++
				w := &world{t: t, r: r, net: netName(net), session: d.as(fmt.Sprintf("property-%d", n)), mark: odd(t), dir: filepath.Join(dir, strconv.Itoa(n))}
				require.NoError(r, os.Mkdir(w.dir, 0o700))
				w.run()
			})
		})
	}
}

// script is a kind of command. P prints a line and then writes it into a file too, as
// the truth about what was printed; M is the length of a sleep that marks the run.
type script struct {
	name, text         string
	stdin, split, wide bool
	lives              bool // until it is ended
	echoes             bool // prints its input and nothing else
}

var repertoire = []script{
	{name: "ends", text: `P one; P two; exit 3`},
	{name: "ends soon", text: `P one; sleep 0.05; P two`},
	{name: "much", text: `seq 1 20000 | tee -a "$W"; exit 1`},
	{name: "both streams", text: `P out; P err >&2; P out; P err >&2; exit 2`, split: true},
	{name: "one stream of two names", text: `P a; P b >&2; P c; P d >&2`},
	{name: "reads", text: `while IFS= read -r x; do P "<$x>"; done; P end; exit 4`, stdin: true, lives: true},
	{name: "echoes", text: `exec cat`, stdin: true, lives: true, echoes: true},
	{name: "never reads", text: `P up; sleep M; true`, stdin: true, lives: true},
	{name: "deaf", text: `trap "" TERM INT HUP; P up; sleep M; sleep M; sleep M`, lives: true},
	{name: "polite", text: `trap 'P bye; exit 5' TERM; trap 'P usr' USR1; P up; while :; do sleep M & wait $!; done`, lives: true},
	{name: "tree", text: `(sleep M; P never) & sleep M | cat & P up; wait`, lives: true},
	{name: "leaves one", text: `sleep M >/dev/null 2>&1 & P up`},
	{name: "leaves a deaf one", text: `(trap "" TERM; sleep M; sleep M) >/dev/null 2>&1 & P up; exit 6`},
	{name: "leaves one that prints", text: `while :; do echo late; sleep 0.02; done & P up`, echoes: true},
	{name: "own sessions", text: `setsid sleep M & setsid bash -c 'trap "" TERM; setsid sleep M; sleep M' & P up; wait`, lives: true, wide: true},
	{name: "leaves without environment", text: `env -i setsid -f setsid -f sleep M; P up`, wide: true},
	{name: "born at the stop", text: `trap 'env -i setsid -f sleep M; exit 0' TERM; P up; sleep M & wait`, lives: true, wide: true},
	{name: "dies", text: `P up; kill -9 $$`},
	{name: "stopped", text: `sleep M & P up; kill -STOP $!; kill -STOP $$; true`, lives: true},
}

// world is one run of the property.
type world struct {
	t       *testing.T
	r       *rapid.T
	net     string
	session *client
	agent   *client
	mark    string
	dir     string
	events  *stream // nil: nobody listens before the end
	tasks   []*work
}

// work is a task and what is known of it.
type work struct {
	script
	id       string
	truth    string // the file
	input    []byte // taken so far
	closed   bool
	joined   strings.Builder // consuming reads, in order
	err      strings.Builder // the same of the second stream
	next     int64
	ended    bool // by an answer
	asked    bool // a kill was answered, or a terminal state consumed
	killed   bool // as requested
	signaled bool
}

func (w *world) call(method, path string, body any) *answer {
	a, err := w.agent.call(w.t.Context(), method, path, body)
	require.NoError(w.r, err, "%s %s", method, path)
	return a
}

func (w *world) into(a *answer, status int, v any) {
	require.Equal(w.r, status, a.status, "%s", a)
	require.NoError(w.r, json.Unmarshal(a.body, v), "%s", a)
}

func (w *world) run() {
	w.agent = w.session
	a := w.call(http.MethodPost, "/agents", fields{})
	var made struct{ ID string }
	w.into(a, http.StatusCreated, &made)
	w.agent = w.session.acting(made.ID)
	if rapid.Bool().Draw(w.r, "listens") {
		w.events = w.session.subscribe(w.t, "", "")
		defer w.events.cut()
	}
	w.start()
	for range rapid.IntRange(3, 25).Draw(w.r, "steps") {
		w.step()
	}
	w.verify()
	w.tell()
	w.finish(made.ID)
}

func (w *world) start() {
	if len(w.tasks) >= 12 {
		return
	}
	s := repertoire[rapid.IntRange(0, len(repertoire)-1).Draw(w.r, "script")]
	w.r.Log(s.name)
	if s.wide && w.net == "group" {
		s = repertoire[0]
	}
	t := &work{script: s, truth: filepath.Join(w.dir, strconv.Itoa(len(w.tasks)))}
	body := startBody(`P() { printf '%s\n' "$1" && printf '%s\n' "$1" >>"$W"; }; : `+w.mark+"\n"+strings.ReplaceAll(s.text, " M", " "+w.mark),
		fields{"env": fields{"W": t.truth}, "label": s.name})
	if s.stdin {
		body["stdin"] = "open"
	}
	if s.split {
		body["streams"] = "split"
	}
	if rapid.IntRange(0, 3).Draw(w.r, "leftovers") == 0 {
		body["leftovers"] = "stop"
	}
	var snap snapshot
	w.into(w.call(http.MethodPost, "/tasks", body), http.StatusCreated, &snap)
	t.id = snap.ID
	w.tasks = append(w.tasks, t)
}

func (w *world) step() {
	pick := func() *work { return w.tasks[rapid.IntRange(0, len(w.tasks)-1).Draw(w.r, "task")] }
	switch rapid.SampledFrom([]string{"start", "start", "input", "input", "close", "signal", "kill", "read", "read", "wait", "look"}).Draw(w.r, "step") {
	case "start":
		w.start()
	case "input":
		w.input(pick(), rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(w.r, "data"), false)
	case "close":
		w.input(pick(), []byte("\n"), true)
	case "signal":
		w.signal(pick(), rapid.SampledFrom([]string{"INT", "TERM", "HUP", "USR1", "STOP", "CONT", "KILL"}).Draw(w.r, "signal"))
	case "kill":
		w.kill(pick())
	case "read":
		w.read(pick(), fmt.Sprintf("limit_bytes=%d", rapid.SampledFrom([]int{1, 3, 7, 1000, 1 << 20}).Draw(w.r, "limit")))
	case "wait":
		w.read(pick(), fmt.Sprintf("wait=true&timeout_ms=%d", rapid.IntRange(1, 150).Draw(w.r, "timeout")))
	case "look":
		require.Equal(w.r, http.StatusOK, w.call(http.MethodGet, "/tasks/"+pick().id+"/output?offset=0", nil).status)
	}
}

func (w *world) input(t *work, data []byte, last bool) {
	a := w.call(http.MethodPost, "/tasks/"+t.id+"/input", fields{"dataBase64": data, "close": last})
	if a.status == http.StatusConflict {
		return
	}
	var got taken
	w.into(a, http.StatusOK, &got)
	require.True(w.r, t.stdin && !t.closed, "%s took input", t.name)
	require.LessOrEqual(w.r, got.Written, len(data))
	t.input = append(t.input, data[:got.Written]...)
	t.closed = got.Closed
}

func (w *world) signal(t *work, name string) {
	a := w.call(http.MethodPost, "/tasks/"+t.id+"/signal", fields{"signal": name})
	require.Contains(w.r, []int{http.StatusNoContent, http.StatusConflict}, a.status, "%s", a)
	t.signaled = t.signaled || a.status == http.StatusNoContent
	if t.ended {
		require.Equal(w.r, http.StatusConflict, a.status, "an ended task takes no signal")
	}
}

func (w *world) kill(t *work) {
	var k killed
	a := w.call(http.MethodDelete, "/tasks/"+t.id, nil)
	w.into(a, a.status, &k)
	require.Contains(w.r, []int{http.StatusOK, http.StatusAccepted}, a.status)
	require.True(w.r, k.Snapshot.Reported)
	if t.ended {
		require.Equal(w.r, "already-finished", k.Outcome)
	}
	t.killed = t.killed || k.Outcome == "requested"
	t.asked = true
}

// second is the second stream in a read.
type second struct {
	Text   string `json:"text"`
	Offset int64  `json:"offset"`
	EOF    bool   `json:"eof"`
}

// read is a consuming one and says whether it was the last.
func (w *world) read(t *work, query string) bool {
	var o struct {
		output
		Stderr *second `json:"stderr"`
	}
	w.into(w.call(http.MethodGet, "/tasks/"+t.id+"/output?"+query, nil), http.StatusOK, &o)
	require.Equal(w.r, t.next, o.Offset, "reads join")
	t.next = o.NextOffset
	t.joined.WriteString(o.Text)
	require.Equal(w.r, t.split, o.Stderr != nil)
	if o.Stderr != nil {
		t.err.WriteString(o.Stderr.Text)
	}
	if t.ended {
		require.True(w.r, o.Snapshot.terminal(), "an end is for ever")
	}
	if o.Snapshot.terminal() {
		t.ended, t.asked = true, true
		require.True(w.r, o.Snapshot.Reported)
		require.NotContains(w.r, o.Snapshot.Detail, "orphan")
	}
	return o.EOF && (o.Stderr == nil || o.Stderr.EOF)
}

// until waits for a fact, as eventually does.
func (w *world) until(what string, fact func() bool) {
	deadline := time.Now().Add(patient(10 * time.Second))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !fact() {
		if time.Now().After(deadline) {
			require.FailNow(w.r, "not in time: "+what)
		}
		<-tick.C
	}
}
