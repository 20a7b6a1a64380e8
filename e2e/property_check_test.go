package e2e

import (
	"bytes"
	"net/http"
	"os"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// verify ends what lives and checks that what was printed can be read. The half of
// those that need not be killed is left to tell its own end.
func (w *world) verify() {
	for i, t := range w.tasks {
		switch byInput := t.stdin && t.name != "never reads"; {
		case t.signaled, // it may have been stopped
			t.lives && !byInput, t.lives && i%2 == 1:
			w.kill(t)
		case t.stdin && !t.closed:
			w.input(t, []byte{}, true)
		}
	}
	for _, t := range w.tasks {
		w.until("end of "+t.name+" "+t.id, func() bool {
			var s snapshot
			w.into(w.call(http.MethodGet, "/tasks/"+t.id, nil), http.StatusOK, &s)
			return s.terminal()
		})
		t.ended = true
	}
	for _, t := range w.tasks {
		log := w.call(http.MethodGet, "/tasks/"+t.id+"/log", nil)
		require.Equal(w.r, http.StatusOK, log.status)
		errs := &answer{}
		if t.split {
			errs = w.call(http.MethodGet, "/tasks/"+t.id+"/log?stream=stderr", nil)
			require.Equal(w.r, http.StatusOK, errs.status)
		}
		w.true(t, log.body, errs.body)
		var whole output
		w.into(w.call(http.MethodGet, "/tasks/"+t.id+"/output?offset=0", nil), http.StatusOK, &whole)
		require.Equal(w.r, plainOnly(string(log.body)), plainOnly(whole.Text))
		if t.asked {
			for !w.read(t, "") {
				w.r.Log("more of", t.id)
			}
			require.Equal(w.r, whole.Text, t.joined.String(), "%s: joined reads are the whole", t.name)
			require.Equal(w.r, string(errs.body), t.err.String(), t.name)
		}
	}
}

// true compares the log with what the command itself knows.
func (w *world) true(t *work, log, errs []byte) {
	if t.echoes {
		if t.stdin {
			require.True(w.r, bytes.HasPrefix(t.input, log), "%s: %q of %q", t.name, log, t.input)
			if t.closed && !t.killed && !t.signaled {
				require.Equal(w.r, string(t.input), string(log))
			}
		}
		return
	}
	known, err := os.ReadFile(t.truth)
	if err != nil {
		require.ErrorIs(w.r, err, os.ErrNotExist)
	}
	if t.split {
		// The file has both streams, in the order of their making.
		var out, errors []byte
		for line := range bytes.Lines(known) {
			if bytes.HasPrefix(line, []byte("err")) {
				errors = append(errors, line...)
			} else {
				out = append(out, line...)
			}
		}
		require.True(w.r, bytes.HasPrefix(log, out) && bytes.HasPrefix(errs, errors), "%q %q of %q", log, errs, known)
		return
	}
	if t.name == "much" {
		// tee writes both in pieces: each has what the other has, but for the last.
		require.True(w.r, bytes.HasPrefix(log, known) || bytes.HasPrefix(known, log))
		if !t.killed && !t.signaled {
			require.Equal(w.r, string(known), string(log))
		}
		return
	}
	if !t.killed && !t.signaled {
		require.Equal(w.r, string(known), string(log), t.name)
		return
	}
	// The shell itself may have told of children that died, and of the last line the
	// file may know nothing.
	rest := string(log)
	for line := range strings.Lines(string(known)) {
		_, after, found := strings.Cut(rest, line)
		require.True(w.r, found, "%s: printed %q, captured %q", t.name, known, log)
		rest = after
	}
}

// plainOnly leaves out what is no text.
func plainOnly(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\uFFFD", "") }

// tell checks that each end was told once: in an answer, or by a notice.
func (w *world) tell() {
	late := w.events == nil
	if late {
		w.events = w.session.subscribe(w.t, "", "")
		defer w.events.cut()
	}
	told := map[string]int{}
	mark := w.session.start(w.t, "true", fields{"label": "mark " + hexText(4)}).ID
	w.until("the mark's notice", func() bool {
		clear(told)
		for _, e := range w.events.all("task.done") {
			told[e.notice(w.t).Task.ID]++
		}
		return told[mark] > 0
	})
	for _, t := range w.tasks {
		switch {
		case t.killed:
			require.LessOrEqual(w.r, told[t.id], 0, "%s %s: a kill is an answer", t.name, t.id)
		case late && t.asked:
			require.Zero(w.r, told[t.id], "%s %s: told twice", t.name, t.id)
		case t.asked:
			require.LessOrEqual(w.r, told[t.id], 1, "%s %s", t.name, t.id)
		default:
			require.Equal(w.r, 1, told[t.id], "%s %s: an end that nobody was told", t.name, t.id)
		}
	}
}

// finish disposes the agent, which has a few live ones more, or purges each task.
func (w *world) finish(agent string) {
	purge := rapid.Bool().Draw(w.r, "purge")
	if purge {
		for _, t := range w.tasks {
			require.Equal(w.r, http.StatusNoContent, w.call(http.MethodDelete, "/tasks/"+t.id+"?purge=true", nil).status)
		}
		w.until("nobody is left", func() bool { return len(saying(w.mark)) == 0 })
		return
	}
	for range 3 {
		w.start()
	}
	a, err := w.session.call(w.t.Context(), http.MethodDelete, "/agents/"+agent, nil)
	require.NoError(w.r, err)
	require.Equal(w.r, http.StatusNoContent, a.status, "%s", a)
	require.Empty(w.r, saying(w.mark), "left by a disposal that was answered")
	for _, t := range w.tasks {
		require.Empty(w.r, w.session.d.aliveOf(t.id), t.name)
	}
}
