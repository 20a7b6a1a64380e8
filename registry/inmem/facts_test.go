package inmem

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A clock that jumps ahead makes nothing older than it can be.
func TestAge(t *testing.T) {
	begun := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	l := life{begun: begun}
	at := func(hours int) moment { return momentOf(begun.Add(hoursLong(hours))) }
	for _, c := range []struct {
		name               string
		clock              int
		alive, ended, want int
	}{
		{"as the clock says", 5, 5, 2, 3},
		{"from before", 5, 5, -10, 15},
		{"after a jump ahead", 50, 5, 2, 5},
		{"from before, after a jump ahead", 50, 5, -10, 15},
		{"after a jump back", 1, 5, 2, -1},
	} {
		require.Equal(t, hoursLong(c.want), l.ageAt(at(c.clock), hoursLong(c.alive), at(c.ended)), c.name)
	}
	require.Equal(t, begun, momentOf(begun).time())
	require.True(t, momentOf(time.Time{}).time().IsZero())
}

func hoursLong(n int) time.Duration { return time.Duration(n) * time.Hour }
