package bash

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/producers/output"
	"afoot/registry"
)

// on has a stand's output in a directory.
func on(t testing.TB, dir string) func(*Config) {
	t.Helper()
	store, err := output.NewStore(output.Config{Dir: dir, MaxBytes: 8 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return func(c *Config) { c.Store = store }
}

func (s *stand) restore(handle json.RawMessage) *run {
	s.t.Helper()
	back, err := s.Restore(handle)
	require.NoError(s.t, err)
	return back.(*run)
}

func handleOf(t testing.TB, r *run) json.RawMessage {
	t.Helper()
	handle, err := r.Handle()
	require.NoError(t, err)
	return handle
}

func shown(t testing.TB, s registry.Stream) string {
	t.Helper()
	page, err := s.Page(0, registry.MaxPageBytes)
	require.NoError(t, err)
	return page.Text
}

// again decodes and encodes a handle as the library does.
func again(t testing.TB, data json.RawMessage) string {
	t.Helper()
	var plain handle
	require.NoError(t, json.Unmarshal(data, &plain))
	text, err := json.Marshal(plain)
	require.NoError(t, err)
	return string(text)
}

// A run is given back with all that was kept of it, by its handle of the beginning as
// well as by that of the end.
func TestRestoredRuns(t *testing.T) {
	dir := t.TempDir()
	before := newStand(t, on(t, dir))
	long := strings.Repeat("#", maxInlineBytes) + "\necho long"
	for name, f := range map[string]fields{
		"plain":           {"command": "echo hi; echo there"},
		"silent":          {"command": "true"},
		"split":           {"command": "echo out; echo err >&2", "streams": "split", "env": fields{"A": "b"}},
		"long":            {"command": long},
		"silent and long": {"command": strings.Repeat("#", maxInlineBytes)},
		"bounded":         {"command": "seq 2000000"},
	} {
		t.Run(name, func(t *testing.T) {
			task := before.start(f)
			first := handleOf(t, task.run)
			task.end()
			want, err := task.Request()
			require.NoError(t, err)
			for _, handle := range []json.RawMessage{first, handleOf(t, task.run)} {
				// Again from what it says itself: a second restart.
				after := newStand(t, on(t, dir))
				back := after.restore(handleOf(t, after.restore(handle)))
				require.JSONEq(t, again(t, handle), string(handle))
				got, err := back.Request()
				require.NoError(t, err)
				require.JSONEq(t, string(want), string(got))
				require.Equal(t, task.output(), shown(t, back))
				written, dropped := task.Size()
				gotWritten, gotDropped := back.Size()
				require.Equal(t, []int64{written, dropped}, []int64{gotWritten, gotDropped})
				require.Equal(t, task.Stderr() == nil, back.Stderr() == nil)
				if second := task.Stderr(); second != nil {
					require.Equal(t, shown(t, second), shown(t, back.Stderr()))
				}
				require.ErrorIs(t, back.Cancel(""), registry.ErrEnded)
				require.Equal(t, registry.CodeConflict, registry.CodeOf(back.Signal("INT")))
				_, err = back.Input(t.Context(), nil, true)
				require.Equal(t, registry.CodeConflict, registry.CodeOf(err))
				require.False(t, back.Left())
				require.Nil(t, back.StopLeftovers(""))
				select {
				case <-back.Grown(1 << 40):
				default:
					t.Fatal("it has ended")
				}
			}
			after := newStand(t, on(t, dir))
			require.NoError(t, after.restore(first).Discard())
		})
	}
	_, err := before.Restore(json.RawMessage(`{"log":{"file":"x"}}`))
	require.Error(t, err)
	_, err = before.Restore(json.RawMessage(`?`))
	require.Error(t, err)
}

// What a live run has printed is there after a crash.
func TestALiveRunIsRestoredAsItWas(t *testing.T) {
	dir := t.TempDir()
	before, after := newStand(t, on(t, dir)), newStand(t, on(t, dir))
	task := before.run("echo one; echo two; exec sleep 602")
	handle := handleOf(t, task.run)
	task.has("two\n")
	require.Equal(t, "one\ntwo\n", shown(t, after.restore(handle)))
	require.NoError(t, task.Cancel(""))
	task.end()
}

func TestARestoredRunWeighsLittle(t *testing.T) {
	dir := t.TempDir()
	before, after := newStand(t, on(t, dir)), newStand(t, on(t, dir))
	task := before.run("echo hi; exit 3")
	task.end()
	handle := handleOf(t, task.run)
	const n = 2000
	runs := make([]*run, n)
	fds, was := descriptors(t), heap()
	begun := time.Now()
	for i := range runs {
		runs[i] = after.restore([]byte(strings.Clone(string(handle))))
	}
	spent := time.Since(begun)
	each := (heap() - was) / n
	t.Logf("a restored run weighs %d bytes and takes %s; its handle: %s", each, spent/n, handle)
	require.Less(t, descriptors(t), fds+n/10, "beside spare files that are made ahead")
	require.Less(t, each, 1024)
	runtime.KeepAlive(runs)
}
