package journal

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// victim writes units of rows for ever and prints the number of each one that is
// written: it is the test binary, run again.
func victim(path string) {
	j, err := Open(Config{Path: path})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	m, err := j.Load(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	n := uint64(0)
	if len(m.Counters) > 0 {
		n = m.Counters[0].Last
	}
	for {
		n++
		mark := unit(j, n)
		if n%3 != 0 { // some are only awaited by a later one
			if err := j.Sync(context.Background(), mark); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
			fmt.Fprintln(os.Stdout, n)
		}
	}
}

// unit is two rows of two tables under one number, and the counter.
func unit(j *Journal, n uint64) registry.Mark {
	r := typical(n)
	r.Output = string(make([]byte, n%7000))
	j.Notices().Put("s", n, NoticeRow{Key: string(r.Snapshot.ID)}, nil)
	return j.Append(r, registry.AgentRow{Seq: n, Owner: registry.Owner{Incarnation: n}}, registry.CounterRow{Kind: "bash", Last: n},
		registry.TaskGone{ID: registry.NewID("bash", n-100)}, registry.AgentGone{Owner: registry.Owner{Incarnation: n - 100}})
}

func TestKilledInMidWrite(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	path := at(t)
	for range rounds {
		told := killed(t, path, time.Duration(20+rand.IntN(60))*time.Millisecond)
		j, err := Open(Config{Path: path})
		require.NoError(t, err)
		m := memory(t, j)
		rows, marks, err := j.Notices().Load(t.Context())
		require.NoError(t, err)
		shut(t, j)
		if told == 0 && len(m.Counters) == 0 {
			continue
		}
		last := m.Counters[0].Last
		require.GreaterOrEqual(t, last, told, "what was told is there")
		require.Equal(t, last, m.Tasks[len(m.Tasks)-1].Seq)
		require.Len(t, m.Tasks, int(min(last, 100)))
		require.Len(t, m.Agents, len(m.Tasks), "no half unit")
		for i := range m.Tasks {
			require.Equal(t, m.Tasks[i].Seq, m.Agents[i].Seq)
			require.Len(t, m.Tasks[i].Output, int(m.Tasks[i].Seq%7000))
		}
		require.LessOrEqual(t, last, uint64(len(rows)), "no row overtakes a notice")
		require.Equal(t, marks[0].Last, uint64(len(rows)))
	}
}

// killed runs a victim for a while and gives the last number that it has told.
func killed(t *testing.T, path string, after time.Duration) (told uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_VICTIM="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var kill *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, err := strconv.ParseUint(lines.Text(), 10, 64)
		require.NoError(t, err)
		if kill == nil {
			kill = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		told = n
	}
	err = cmd.Wait()
	require.Equal(t, "signal: killed", fmt.Sprint(err))
	return told
}
