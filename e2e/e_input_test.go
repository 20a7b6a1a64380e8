package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// taken is the answer to an input.
type taken struct {
	Written int  `json:"written"`
	Closed  bool `json:"closed"`
}

// open makes a command read what is sent.
var stdinOpen = fields{"stdin": "open"}

// input sends a body to a task's standard input.
func (c *client) input(t *testing.T, id string, body any) taken {
	t.Helper()
	a := c.do(t, http.MethodPost, "/tasks/"+id+"/input", body)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	var got taken
	a.into(t, &got)
	return got
}

// tryInput is input from any goroutine.
func (c *client) tryInput(ctx context.Context, id string, body any) (taken, error) {
	a, err := c.call(ctx, http.MethodPost, "/tasks/"+id+"/input", body)
	if err != nil {
		return taken{}, err
	}
	if a.status != http.StatusOK {
		return taken{}, fmt.Errorf("input: %s", a)
	}
	var got taken
	return got, json.Unmarshal(a.body, &got)
}

func TestE3RefusedInputs(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	c := d.as("e3")
	input := func(c *client, id string, body any) *answer {
		t.Helper()
		return c.do(t, http.MethodPost, "/tasks/"+id+"/input", body)
	}
	ended := c.start(t, `exit 4`, stdinOpen).ID
	c.finish(t, ended)
	require.Contains(t, input(c, ended, fields{"data": "x"}).refused(t, http.StatusConflict, "conflict"), "completed")
	input(c, ended, fields{"close": true}).refused(t, http.StatusConflict, "conflict")

	killed := c.start(t, `sleep 851; true`, stdinOpen).ID
	c.kill(t, killed)
	c.finish(t, killed)
	require.Contains(t, input(c, killed, fields{"data": "x"}).refused(t, http.StatusConflict, "conflict"), "killed")

	left := c.start(t, `{ cat >/dev/null; sleep 853; } <&0 >/dev/null 2>&1 & echo up`, stdinOpen).ID
	c.finish(t, left)
	input(c, left, fields{"data": "x"}).refused(t, http.StatusConflict, "conflict")

	shut := c.start(t, `exec 0<&-; echo up; sleep 855; true`, stdinOpen).ID
	c.says(t, shut, "up")
	require.Contains(t, input(c, shut, fields{"data": "x"}).refused(t, http.StatusConflict, "conflict"), "closed")
	require.Equal(t, "running", c.get(t, shut).Status)

	empty := c.start(t, `echo up; sleep 857; true`).ID
	c.says(t, empty, "up")
	input(c, empty, fields{"data": "x"}).refused(t, http.StatusConflict, "conflict")
	input(c, empty, fields{"close": true}).refused(t, http.StatusConflict, "conflict")

	closed := c.start(t, `cat; sleep 859; true`, stdinOpen).ID
	require.Equal(t, taken{3, true}, c.input(t, closed, fields{"data": "end", "close": true}))
	c.says(t, closed, "end")
	require.Contains(t, input(c, closed, fields{"data": "x"}).refused(t, http.StatusConflict, "conflict"), "closed")

	for _, id := range []string{"bash-1000", "bash-0", "nothing", "pty-1"} {
		input(c, id, fields{"data": "x"}).refused(t, http.StatusNotFound, "unknown_task")
	}
	gone := c.start(t, `true`, stdinOpen).ID
	c.finish(t, gone)
	c.purge(t, gone)
	input(c, gone, fields{"data": "x"}).refused(t, http.StatusGone, "gone")

	live := c.start(t, `cat`, stdinOpen).ID
	input(d.as("e3-other"), live, fields{"data": "x"}).refused(t, http.StatusForbidden, "foreign_task")
	input(d.with(d.mint(map[string]any{"sid": "e3", "scope": "tasks:read"})), live, fields{"data": "x"}).
		refused(t, http.StatusForbidden, "forbidden")
	for _, body := range []any{
		fields{"data": "x", "dataBase64": "eA=="}, fields{"dataBase64": "%%%"}, fields{"dataBase64": "eA"}, fields{"data": 7},
		fields{"data": "x", "eof": true}, fields{"close": "yes"}, `{"data":"x","data":"y"}`, `[]`, `"x"`, "{\"data\":\"\xff\"}", ``,
	} {
		input(c, live, body).refused(t, http.StatusBadRequest, "invalid")
	}
	input(c, live, fields{"data": strings.Repeat("x", 3<<20)}).refused(t, http.StatusRequestEntityTooLarge, "too_large")
	require.Equal(t, taken{0, false}, c.input(t, live, fields{"data": ""}))
	require.Equal(t, taken{2, true}, c.input(t, live, fields{"data": "ok", "close": true}))
	s, text := c.finish(t, live)
	require.Equal(t, "ok", text, "what was refused never arrived")
	require.Equal(t, 0, s.exitCode())
	c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"stdin": "opened"})).refused(t, http.StatusBadRequest, "invalid")
}

func TestE3InputIsExact(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("e3")
	binary := make([]byte, 256*400)
	for i := range binary {
		binary[i] = byte(i * (1 + i/256))
	}
	for name, row := range map[string]struct {
		body fields
		want string
	}{
		"text":           {fields{"data": "hi\n"}, "hi\n"},
		"unicode":        {fields{"data": "ä 界 😀 \u2028\u0000\t\r\n"}, "ä 界 😀 \u2028\x00\t\r\n"},
		"no newline":     {fields{"data": "x"}, "x"},
		"base64":         {fields{"dataBase64": base64.StdEncoding.EncodeToString(binary)}, string(binary)},
		"control":        {fields{"data": "\x03\x04\x1a\x1b[A"}, "\x03\x04\x1a\x1b[A"},
		"long":           {fields{"data": strings.Repeat("0123456789abcdef", 60000)}, strings.Repeat("0123456789abcdef", 60000)},
		"nothing at all": {fields{"data": ""}, ""},
	} {
		for _, streams := range []string{"merged", "split"} {
			t.Run(name+", "+streams, func(t *testing.T) {
				t.Parallel()
				id := c.start(t, `cat; echo rc=$?; read x; echo rc=$?`, stdinOpen, fields{"streams": streams}).ID
				require.Equal(t, taken{len(row.want), false}, c.input(t, id, row.body))
				require.Equal(t, taken{0, true}, c.input(t, id, fields{"close": true}))
				s, _ := c.finish(t, id)
				require.Equal(t, row.want+"rc=0\nrc=1\n", string(c.log(t, id)))
				require.Equal(t, "exit code: 0", s.Detail)
			})
		}
	}
}

// What a script reads, step by step, with its answers in between.
func TestE3Conversation(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("e3")
	id := c.start(t, `while printf '> '; IFS= read -r line; do echo "got <$line>"; done; echo rc=$?; exit 6`, stdinOpen).ID
	want := "> "
	for i := range 30 {
		line := fmt.Sprintf("  line %d ", i)
		require.Equal(t, taken{len(line) + 1, false}, c.input(t, id, fields{"data": line + "\n"}))
		want += "got <" + line + ">\n> "
		c.says(t, id, want)
	}
	require.Equal(t, "running", c.get(t, id).Status)
	c.input(t, id, fields{"data": "last", "close": true})
	s, text := c.finish(t, id)
	require.Equal(t, want+"rc=0\n", text)
	require.Equal(t, 6, s.exitCode())
}

// A task that does not read takes what its pipe holds, in bounded time, holds up
// nobody else, and what was told to be written is what it finds when it reads.
func TestE3InputThatIsNotRead(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("e3")
	g := newGate(t)
	const size = 1 << 20
	id := c.start(t, g.wait()+`wc -c; exit 2`, stdinOpen).ID
	other := c.start(t, `cat`, stdinOpen).ID
	data := strings.Repeat("x", size)
	var got taken
	var took time.Duration
	var inputs errgroup.Group
	inputs.Go(func() error {
		begun := time.Now()
		var err error
		got, err = c.tryInput(t.Context(), id, fields{"data": data, "close": true})
		took = time.Since(begun)
		return err
	})
	answered := make(chan error, 1)
	go func() { answered <- inputs.Wait() }()
	rounds := 0
	for done := false; !done; rounds++ {
		begun := time.Now()
		require.Equal(t, "running", c.get(t, id).Status)
		c.read(t, id, "offset=0")
		c.list(t, "")
		require.Equal(t, 2, c.input(t, other, fields{"data": "y\n"}).Written)
		_, _ = c.finish(t, c.start(t, "true").ID)
		require.Less(t, time.Since(begun), patient(3*time.Second), "other calls are not blocked")
		select {
		case err := <-answered:
			require.NoError(t, err)
			done = true
		default:
		}
	}
	require.Greater(t, rounds, 1)
	require.Less(t, got.Written, size)
	require.Positive(t, got.Written)
	require.False(t, got.Closed, "not all was taken")
	require.Less(t, took, patient(15*time.Second))

	// A caller who leaves takes its rest along.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.tryInput(ctx, id, fields{"data": "left"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	begun := time.Now()
	c.input(t, id, fields{"data": ""})
	require.Less(t, time.Since(begun), patient(2*time.Second), "who has left is not waited for")

	g.open(t)
	require.Equal(t, taken{1, true}, c.input(t, id, fields{"data": "z", "close": true}))
	s, text := c.finish(t, id)
	require.Equal(t, strconv.Itoa(got.Written+1), strings.TrimSpace(text))
	require.Equal(t, 2, s.exitCode())
	c.kill(t, other)
}

// A kill, an end and a shutdown free an input that is stuck.
func TestE3InputEndsWithTheTask(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("e3")
	data := fields{"data": strings.Repeat("x", 1<<20)}
	for name, end := range map[string]func(id string, g *gate){
		"killed":   func(id string, _ *gate) { c.kill(t, id) },
		"exits":    func(_ string, g *gate) { g.open(t) },
		"signal":   func(id string, _ *gate) { c.signal(t, id, "KILL") },
		"shutdown": func(string, *gate) { d.stop() },
	} {
		if name == "shutdown" {
			continue // the last one, below
		}
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			id := c.start(t, `echo up; `+g.wait()+`exit 0`, stdinOpen).ID
			c.says(t, id, "up")
			answered := c.stuckInput(t, id, data)
			begun := time.Now()
			end(id, g)
			a := <-answered
			require.NotNil(t, a)
			require.Less(t, time.Since(begun), patient(3*time.Second))
			require.Contains(t, []int{http.StatusOK, http.StatusConflict}, a.status, "%s", a)
			c.finish(t, id)
		})
	}
	id := c.start(t, `echo up; sleep 861; true`, stdinOpen).ID
	c.says(t, id, "up")
	answered := c.stuckInput(t, id, data)
	begun := time.Now()
	d.stop()
	require.Less(t, time.Since(begun), patient(grace+2*time.Second))
	<-answered
}

// stuckInput begins an input that is not read and returns when the pipe is full. The
// channel gives its answer; nil if there was none.
func (c *client) stuckInput(t *testing.T, id string, body any) <-chan *answer {
	t.Helper()
	answered := make(chan *answer, 1)
	go func() {
		a, _ := c.call(t.Context(), http.MethodPost, "/tasks/"+id+"/input", body)
		answered <- a
	}()
	// An input behind it is not taken in a time in which each other one is.
	eventually(t, 10*time.Second, "the pipe is full", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := c.call(ctx, http.MethodPost, "/tasks/"+id+"/input", fields{"data": ""})
		return err != nil
	})
	return answered
}

// Inputs are not mixed: each comes as a whole, and those of one caller in order.
func TestE3InputsInOrder(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("e3")
	t.Run("at once", func(t *testing.T) {
		const size = 300000
		id := c.start(t, `cat`, stdinOpen).ID
		var g errgroup.Group
		for _, letter := range "abcde" {
			g.Go(func() error {
				got, err := c.tryInput(t.Context(), id, fields{"data": strings.Repeat(string(letter), size)})
				if err == nil && got.Written != size {
					err = fmt.Errorf("%c: %+v", letter, got)
				}
				return err
			})
		}
		require.NoError(t, g.Wait())
		c.input(t, id, fields{"close": true})
		c.finish(t, id)
		text := string(c.log(t, id))
		require.Len(t, text, 5*size)
		seen := ""
		for i := range 5 {
			part := text[i*size : (i+1)*size]
			require.Equal(t, size, strings.Count(part, part[:1]), "parts are whole")
			require.NotContains(t, seen, part[:1])
			seen += part[:1]
		}
	})
	t.Run("one after another", func(t *testing.T) {
		id := c.start(t, `cat`, stdinOpen).ID
		var want strings.Builder
		for i := range 300 {
			data := fmt.Sprintf("%d;", i)
			want.WriteString(data)
			require.Equal(t, len(data), c.input(t, id, fields{"data": data}).Written)
		}
		c.input(t, id, fields{"close": true})
		_, text := c.finish(t, id)
		require.Equal(t, want.String(), text)
	})
}

// A reader that goes ends no one but the input.
func TestE3ReaderThatGoes(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("e3")
	for _, command := range []string{
		`head -c 3; exec 0<&-; echo; echo up; sleep 863; true`,
		`head -c 3 >/dev/null; exec 0</dev/null; echo up; cat; sleep 865; true`,
	} {
		id := c.start(t, command, stdinOpen).ID
		require.Equal(t, 3, c.input(t, id, fields{"data": "abc"}).Written)
		c.says(t, id, "up")
		a := c.do(t, http.MethodPost, "/tasks/"+id+"/input", fields{"data": "more"})
		require.Contains(t, a.refused(t, http.StatusConflict, "conflict"), "closed")
		require.Equal(t, "running", c.get(t, id).Status)
		require.Equal(t, "requested", c.kill(t, id).Outcome)
		c.finish(t, id)
	}
}
