package sse

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnIdleSessionAgesToItsMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(Config{})
		kept := func() (sessions int, marks map[string]mark) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.sessions), maps.Clone(h.marks)
		}
		h.Append("s", Notice{Key: "1"})
		h.Append("t", Notice{Key: "1"})
		<-time.After(30 * time.Minute)
		h.edit("s", func(l *noticeLog) { l.written(1, time.Now()) })
		<-time.After(24 * time.Hour)
		synctest.Wait()
		sessions, _ := kept()
		require.Equal(t, 2, sessions, "not swept yet")
		<-time.After(time.Hour)
		synctest.Wait()
		sessions, marks := kept()
		require.Equal(t, 1, sessions, "pending ones do not age")
		require.Equal(t, map[string]mark{"s": {last: 1, evicted: 1}}, marks)

		h.Withdraw("t", "1")
		sessions, marks = kept()
		require.Zero(t, sessions)
		require.Equal(t, mark{last: 1}, marks["t"])
		require.Equal(t, uint64(2), h.Append("t", Notice{}))
		_, marks = kept()
		require.NotContains(t, marks, "t")
		require.NoError(t, h.Close(context.Background(), ByeShutdown))
	})
}
