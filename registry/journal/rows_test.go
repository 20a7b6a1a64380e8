package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// filled gives a value of which no field is zero, so that a field which the schema
// does not know is noticed.
func filled[T any](t *testing.T, seed int) T {
	t.Helper()
	var v T
	n := seed
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch {
		case v.Type() == reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(1_700_000_000+int64(n), 123456789).UTC()))
		case v.Kind() == reflect.String:
			v.SetString(fmt.Sprintf("text\x00\xff%d", n))
		case v.CanInt():
			v.SetInt(1<<40 + int64(n))
		case v.CanUint() && v.Kind() != reflect.Uint8:
			v.SetUint(1<<63 + uint64(n)) // beyond an int64
		case v.Kind() == reflect.Uint8:
			v.SetUint(uint64(n % 256))
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.Kind() == reflect.Slice:
			v.SetBytes(fmt.Appendf(nil, "{\"n\":%d}", n))
		case v.Kind() == reflect.Struct:
			for _, f := range v.Fields() {
				fill(f)
			}
		case v.Kind() == reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		default:
			t.Fatalf("no value for a %s", v.Type())
		}
	}
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func TestEveryFieldSurvives(t *testing.T) {
	path := at(t)
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	want := registry.Memory{
		Tasks:    []registry.TaskRow{filled[registry.TaskRow](t, 1), filled[registry.TaskRow](t, 50), {}},
		Agents:   []registry.AgentRow{filled[registry.AgentRow](t, 1), filled[registry.AgentRow](t, 50)},
		Keys:     []registry.KeyRow{filled[registry.KeyRow](t, 1), filled[registry.KeyRow](t, 50)},
		Counters: []registry.CounterRow{filled[registry.CounterRow](t, 1), filled[registry.CounterRow](t, 50)},
	}
	var rows []registry.Row
	for _, r := range want.Tasks {
		rows = append(rows, r)
	}
	for _, r := range want.Agents {
		rows = append(rows, r)
	}
	for _, r := range want.Keys {
		rows = append(rows, r)
	}
	for _, r := range want.Counters {
		rows = append(rows, r)
	}
	synced(t, j, rows...)
	want.Tasks = []registry.TaskRow{want.Tasks[2], want.Tasks[0], want.Tasks[1]} // by Seq
	require.Equal(t, want, memory(t, j))
	shut(t, j)
	j = opened(t, Config{Path: path})
	require.Equal(t, want, memory(t, j))

	synced(t, j,
		registry.TaskGone{ID: want.Tasks[1].Snapshot.ID}, registry.AgentGone{Owner: want.Agents[0].Owner},
		registry.KeyGone{Session: want.Keys[0].Session, Subject: want.Keys[0].Subject, Key: want.Keys[0].Key},
		registry.TaskGone{ID: "bash-404"}, registry.AgentGone{}, registry.KeyGone{})
	got := memory(t, j)
	require.Equal(t, []registry.TaskRow{want.Tasks[0], want.Tasks[2]}, got.Tasks)
	require.Equal(t, want.Agents[1:], got.Agents)
	require.Equal(t, want.Keys[1:], got.Keys)
	require.Equal(t, want.Counters, got.Counters)
}

func TestNewestRowCounts(t *testing.T) {
	j := opened(t, Config{Path: at(t)})
	r := task(1)
	r.Output = "first"
	synced(t, j, r)
	r.Output, r.Cursor = "second", 7
	synced(t, j, r)
	require.Equal(t, []registry.TaskRow{r}, memory(t, j).Tasks)
	r.Output = ""
	synced(t, j, registry.TaskGone{ID: r.Snapshot.ID}, r)
	require.Equal(t, []registry.TaskRow{r}, memory(t, j).Tasks, "gone and made anew in one unit")
	synced(t, j, r, registry.TaskGone{ID: r.Snapshot.ID})
	require.Empty(t, memory(t, j).Tasks)
}

// TestHandleStaysAsItWas: in line, and on disk.
func TestHandleStaysAsItWas(t *testing.T) {
	with := func(handle string) registry.TaskRow {
		r := task(1)
		r.Handle = []byte(handle)
		return r
	}
	tests := map[string]struct {
		rows []registry.Row
		want []byte
	}{
		"nil behind one":         {[]registry.Row{with("1"), task(1)}, []byte("1")},
		"nil twice":              {[]registry.Row{with("1"), task(1), task(1)}, []byte("1")},
		"a newer one":            {[]registry.Row{with("1"), task(1), with("2"), task(1)}, []byte("2")},
		"empty":                  {[]registry.Row{with("1"), with("")}, nil},
		"nil behind empty":       {[]registry.Row{with("1"), with(""), task(1)}, nil},
		"nil behind nothing":     {[]registry.Row{task(1), task(1)}, nil},
		"the row went meanwhile": {[]registry.Row{with("1"), registry.TaskGone{ID: "bash-1"}, task(1)}, nil},
		"and came again":         {[]registry.Row{with("1"), registry.TaskGone{ID: "bash-1"}, with("2"), task(1)}, []byte("2")},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			want := task(1)
			want.Handle = c.want
			for written := range len(c.rows) + 1 { // so many of them before the others are in line
				j := opened(t, Config{Path: at(t)})
				for i, row := range c.rows {
					mark := j.Append(row)
					if i < written {
						require.NoError(t, j.Sync(t.Context(), mark))
					}
				}
				require.Equal(t, []registry.TaskRow{want}, memoryOf(t, j))
			}
		})
	}
}

// memoryOf gives the tasks, once all is written.
func memoryOf(t *testing.T, j *Journal) []registry.TaskRow {
	t.Helper()
	require.NoError(t, j.Sync(t.Context(), j.Append()))
	return memory(t, j).Tasks
}

func TestSettings(t *testing.T) {
	path := at(t)
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	_, found := j.Setting("epoch")
	require.False(t, found)
	j.SetSetting("epoch", "old")
	require.NoError(t, j.Sync(t.Context(), j.SetSetting("epoch", "new")))
	value, found := j.Setting("epoch")
	require.True(t, found)
	require.Equal(t, "new", value)
	shut(t, j)
	j = opened(t, Config{Path: path})
	value, _ = j.Setting("epoch")
	require.Equal(t, "new", value)
}

func TestFilesAreForTheOwnerAlone(t *testing.T) {
	path := at(t)
	j := opened(t, Config{Path: path})
	synced(t, j, task(1))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), e.Name())
	}
	require.Equal(t, []string{"journal.db", "journal.db-reserve", "journal.db-wal"}, names)
}

func TestClosedCleanLeavesNoLog(t *testing.T) {
	path := at(t)
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	for n := range uint64(100) {
		j.Append(task(n + 1)) // nobody waits
	}
	shut(t, j)
	require.NoError(t, j.Close(t.Context()), "again")
	require.NoFileExists(t, path+walSuffix)
	require.ErrorIs(t, j.Sync(t.Context(), j.Append(task(200))), errClosed)
	require.ErrorIs(t, func() error { _, err := j.Load(t.Context()); return err }(), errClosed)
	require.Len(t, memory(t, opened(t, Config{Path: path})).Tasks, 100)
}

func TestOneProcessAtATime(t *testing.T) {
	path := at(t)
	opened(t, Config{Path: path})
	_, err := Open(Config{Path: path})
	require.ErrorIs(t, err, ErrInUse)
}
