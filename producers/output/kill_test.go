package output

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asVictim makes this program one that keeps a log until it is killed.
const asVictim = "OUTPUT_TEST_AS_VICTIM"

// victim prints the handle of a log, then the end of each page that it was given.
func victim(dir string) {
	store, err := NewStore(Config{Dir: dir, MaxBytes: 100_000})
	if err != nil {
		panic(err)
	}
	log, err := store.Create()
	if err != nil {
		panic(err)
	}
	handle, err := log.Handle()
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(os.Stdout, "%s\n", handle)
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	// It is killed by its pipe.
	writer := exec.Command("seq", "-f", "%09.0f", "0", "99999999")
	writer.Stdout = w
	if err := writer.Start(); err != nil {
		panic(err)
	}
	go func() { _ = log.Drain(r) }()
	for next := int64(0); ; {
		<-log.Grown(next)
		page, err := log.Page(next, 5000)
		if err != nil {
			panic(err)
		}
		next = page.NextOffset
		log.keep.RLock()
		log.lend(log.file, log.place.at(next)) // so that it moves to a new file
		log.keep.RUnlock()
		_, _ = fmt.Fprintln(os.Stdout, next)
	}
}

// At whatever instant the process is killed: what a reader was given is there or was
// dropped by the bound, and every byte is in its place.
func TestALogOutlivesItsProcess(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	wrapped := 0
	for round := 0; round < 25 || wrapped == 0 && round < 60; round++ {
		most := 60_000 * max(1, round-24) // where that was too short for a log to come to its bound
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), asVictim+"="+dir)
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		out := bufio.NewReader(pipe)
		handle, err := out.ReadBytes('\n')
		require.NoError(t, err)
		timer := time.AfterFunc(time.Duration(rand.IntN(most))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		given := int64(0)
		for {
			line, err := out.ReadBytes('\n')
			if err != nil {
				break
			}
			given, err = strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
			require.NoError(t, err)
		}
		timer.Stop()
		require.Error(t, cmd.Wait(), "it was killed")

		store, err := NewStore(Config{Dir: dir, MaxBytes: 100_000})
		require.NoError(t, err)
		log := reopen(t, store, handle)
		written, dropped := log.Size()
		require.GreaterOrEqual(t, written, given)
		require.Empty(t, log.Loss())
		if dropped > 0 { // room is made before it is written to, for all that is in the pipe
			wrapped++
		}
		kept := text(t, log, 10_000)
		require.Len(t, kept, int(written-dropped))
		for offset := dropped; offset < written; {
			line := fmt.Sprintf("%09d\n", offset/10)[offset%10:]
			line = line[:min(len(line), int(written-offset))]
			require.Equal(t, line, kept[offset-dropped:][:len(line)])
			offset += int64(len(line))
		}
		require.NoError(t, log.Remove())
		require.NoError(t, store.Close())
		store, err = NewStore(Config{Dir: dir})
		require.NoError(t, err)
		_, err = store.Sweep()
		require.NoError(t, err)
		require.NoError(t, store.Close())
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	require.Positive(t, wrapped)
}
