package output

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTotalCountsWhatIsKept(t *testing.T) {
	store := newStore(t, 1<<20)
	var logs []*Log
	kept := func() (sum int64) {
		for _, log := range logs {
			written, dropped := log.Size()
			sum += written - dropped
		}
		return sum
	}
	for range 5 {
		log := newLog(t, store)
		logs = append(logs, log)
		feed(t, log, numbered(150_000))
		require.Equal(t, kept(), store.Total())
	}
	for len(logs) > 0 {
		logs[0].End()
		require.Equal(t, kept(), store.Total(), "an end changes nothing")
		require.NoError(t, logs[0].Remove())
		require.NoError(t, logs[0].Remove())
		logs = logs[1:]
		require.Equal(t, kept(), store.Total(), "a removal gives back at once, and once")
	}
	require.Zero(t, store.Total())
}

func TestRoomEndsAtTheBudget(t *testing.T) {
	called := make(chan int64, 100)
	var store *Store
	store, err := NewStore(Config{Dir: t.TempDir(), TotalBytes: 100_000, Full: func() { called <- store.Total() }})
	require.NoError(t, err)
	log := newLog(t, store)
	feed(t, log, make([]byte, 99_999))
	require.NoError(t, store.Room())
	require.Empty(t, called)
	feed(t, log, make([]byte, 1))
	require.EqualValues(t, 100_000, <-called)
	err = store.Room()
	require.ErrorIs(t, err, ErrNoRoom)
	require.ErrorContains(t, err, "AFOOT_OUTPUT_TOTAL_BYTES")

	feed(t, log, make([]byte, 1))
	require.Empty(t, called, "it is not called for every byte")
	feed(t, log, make([]byte, 50_000))
	require.GreaterOrEqual(t, <-called, int64(100_001), "but again when the total goes on rising")
	written, dropped := log.Size()
	require.Equal(t, []int64{150_001, 0}, []int64{written, dropped}, "running work goes on")

	log.End()
	require.NoError(t, log.Remove())
	require.NoError(t, store.Room())
	next := newLog(t, store)
	for len(called) > 0 {
		<-called
	}
	feed(t, next, make([]byte, 100_000))
	<-called
	next.End()
	require.NoError(t, store.Close(), "no call is left behind")
	_, err = NewStore(Config{Dir: t.TempDir(), TotalBytes: -1})
	require.Error(t, err)
}
