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
	at := func(hours time.Duration) moment { return momentOf(begun.Add(hours * time.Hour)) }
	for _, c := range []struct {
		name               string
		clock              moment
		alive, ended, want time.Duration
	}{
		{"as the clock says", at(5), 5, 2, 3},
		{"from before", at(5), 5, -10, 15},
		{"after a jump ahead", at(50), 5, 2, 5},
		{"from before, after a jump ahead", at(50), 5, -10, 15},
		{"after a jump back", at(1), 5, 2, -1},
	} {
		require.Equal(t, c.want*time.Hour, l.ageAt(c.clock, c.alive*time.Hour, at(c.ended)), c.name)
	}
	require.Equal(t, begun, momentOf(begun).time())
	require.True(t, momentOf(time.Time{}).time().IsZero())
}
