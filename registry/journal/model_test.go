package journal

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"afoot/registry"
)

// model is what a journal must hold: the newest row of each key.
type model map[key]any

func (m model) apply(rows []any) model {
	m = maps.Clone(m)
	for _, row := range rows {
		switch r := row.(type) {
		case registry.TaskGone, registry.AgentGone, registry.KeyGone, noticeGone:
			delete(m, keyOf(row))
		case registry.TaskRow:
			was, _ := m[keyOf(r)].(registry.TaskRow)
			switch {
			case r.Handle == nil:
				r.Handle = was.Handle
			case len(r.Handle) == 0:
				r.Handle = nil
			}
			m[keyOf(r)] = r
		default:
			m[keyOf(row)] = row
		}
	}
	return m
}

// read gives what a journal holds in the form of a model.
func read(t testing.TB, j *Journal) model {
	t.Helper()
	m := model{}
	kept := memory(t, j)
	for _, r := range kept.Tasks {
		m[keyOf(r)] = r
	}
	for _, r := range kept.Agents {
		m[keyOf(r)] = r
	}
	for _, r := range kept.Keys {
		m[keyOf(r)] = r
	}
	for _, r := range kept.Counters {
		m[keyOf(r)] = r
	}
	rows, _, err := j.Notices().Load(t.Context())
	require.NoError(t, err)
	for _, r := range rows {
		m[keyOf(noticePut(r))] = noticePut(r)
	}
	return m
}

func rowsOf(t *rapid.T, number *uint64) (rows []any) {
	n := func() uint64 { return rapid.Uint64Range(1, 6).Draw(t, "n") }
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		switch rapid.IntRange(0, 8).Draw(t, "row") {
		case 0, 1:
			r := task(n())
			r.Cursor = int64(rapid.Uint64().Draw(t, "cursor"))
			r.Handle = rapid.SampledFrom([]json.RawMessage{nil, {}, json.RawMessage("1"), json.RawMessage("2")}).Draw(t, "handle")
			r.Output = string(make([]byte, rapid.IntRange(0, 9000).Draw(t, "output")))
			rows = append(rows, r)
		case 2:
			rows = append(rows, registry.TaskGone{ID: registry.NewID("bash", n())})
		case 3:
			rows = append(rows, registry.AgentRow{Owner: registry.Owner{Session: "s", Incarnation: n()}, Label: rapid.String().Draw(t, "label"), Ending: rapid.Bool().Draw(t, "ending")})
		case 4:
			rows = append(rows, registry.AgentGone{Owner: registry.Owner{Session: "s", Incarnation: n()}})
		case 5:
			rows = append(rows, registry.KeyRow{Session: "s", Key: rapid.StringN(0, 2, 2).Draw(t, "key"), ID: "bash-1"})
		case 6:
			rows = append(rows, registry.CounterRow{Kind: "bash", Last: rapid.Uint64().Draw(t, "last")})
		case 7:
			*number++
			rows = append(rows, noticePut{Session: "s", Number: *number, Key: "bash-1"})
		case 8:
			rows = append(rows, noticeGone{session: "s", number: n()})
		}
	}
	return rows
}

// crash copies the files of a journal in the middle of a write.
type crash struct {
	// in how many writes, and after which part of that one.
	in   int
	part float64
	// told is the newest unit known to be written, asked how many there are; both
	// are frozen in from and until when the copy is made.
	told, asked, from, until int
	copy                     func() string
	path                     string
}

func (c *crash) write(f *tamperedFile, p []byte, off int64) {
	c.in--
	if c.in != 0 || c.path != "" {
		return
	}
	_, _ = f.File.WriteAt(p[:int(float64(len(p))*c.part)], off)
	c.from, c.until, c.path = c.told, c.asked, c.copy()
}

// TestModel holds a journal against a map, and its files as they were in the
// middle of some write against what was told and what was asked for until then.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, crashed := t.TempDir(), t.TempDir()
		path := filepath.Join(dir, "journal.db")
		layer := &tampered{}
		c := &crash{
			in:   rapid.IntRange(1, 80).Draw(rt, "crash in write"),
			part: rapid.SampledFrom([]float64{0, 0.003, 0.5, 1}).Draw(rt, "after part"),
		}
		c.copy = func() string { return copied(t, path, crashed) }
		reopen := func() *Journal {
			j, err := open(Config{Path: path, Full: rapid.Bool().Draw(rt, "full")}, layer.over, schema())
			require.NoError(rt, err)
			return j
		}
		j := reopen()
		defer func() { _ = j.Close(t.Context()) }()
		layer.crash(c)

		states := []model{{}} // after each unit
		var number uint64
		settle := func(rt *rapid.T) {
			require.NoError(rt, j.Sync(t.Context(), j.Append()))
			layer.mu.Lock()
			c.told = c.asked
			layer.mu.Unlock()
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				rows := rowsOf(rt, &number)
				states = append(states, states[len(states)-1].apply(rows))
				layer.mu.Lock()
				c.asked++
				layer.mu.Unlock()
				l := &j.line
				l.mu.Lock()
				defer l.mu.Unlock()
				for _, row := range rows {
					l.addLocked(row, nil)
				}
				l.endLocked()
			},
			"sync": settle,
			"move": func(rt *rapid.T) {
				require.NoError(rt, j.do(t.Context(), func(d *db) error { return d.checkpoint(sqlite3.CHECKPOINT_PASSIVE) }))
			},
			"look": func(rt *rapid.T) {
				settle(rt)
				require.Equal(rt, states[len(states)-1], read(t, j))
			},
			"reopen": func(rt *rapid.T) {
				require.NoError(rt, j.Close(t.Context()))
				j = reopen()
				require.Equal(rt, states[len(states)-1], read(t, j))
			},
		})
		layer.mu.Lock()
		defer layer.mu.Unlock()
		if c.path == "" {
			return
		}
		again, err := Open(Config{Path: c.path})
		require.NoError(rt, err)
		got := read(t, again)
		require.NoError(rt, again.Close(t.Context()))
		for _, s := range states[c.from : c.until+1] {
			if assert.ObjectsAreEqual(s, got) {
				return
			}
		}
		rt.Fatalf("the crash left none of the states %d to %d: %v", c.from, c.until, got)
	})
}
