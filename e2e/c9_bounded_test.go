package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// C9: however much is printed, disk and memory stay bounded, the newest is kept and
// the loss is told.
func TestC9Bounded(t *testing.T) {
	t.Parallel()
	const (
		bound = 16 << 20
		ends  = 2 * 4096 // a file's first and last block are used in part
	)
	d := serve(t, "AFOOT_OUTPUT_MAX_BYTES=16MiB")
	c := d.as("c9")
	for _, row := range []struct {
		command string
		total   int64 // 0: until it is killed
		tail    string
	}{
		{`yes`, 0, ""},
		{`head -c 300000000 /dev/zero`, 300000000, "\x00"},
		{`yes € | head -c 200000000; echo; echo END`, 200000005, "\nEND\n"},
		{`head -c 200000000 /dev/zero >&2; printf 'no newline'`, 200000010, "no newline"},
		{`for i in {1..60000}; do printf '%01000d\n' $i; done`, 60060000, "0060000\n"},
	} {
		t.Run(row.command, func(t *testing.T) {
			base := d.residentKiB(t)
			disk := d.diskBytes(t)
			id := c.start(t, row.command).ID
			var most int
			var largest int64
			begun := time.Now()
			eventually(t, 60*time.Second, "end", func() bool {
				most = max(most, d.residentKiB(t))
				largest = max(largest, d.diskBytes(t)-disk)
				s := c.get(t, id)
				if row.total == 0 && s.Status == "running" && time.Since(begun) > 4*time.Second {
					c.kill(t, id)
				}
				return s.terminal()
			})
			require.LessOrEqual(t, largest, int64(bound+ends), "blocks on the disk")
			require.LessOrEqual(t, d.diskBytes(t)-disk, int64(bound+ends))
			require.Less(t, most-base, 20<<10, "KiB of memory beyond what it had")

			s := c.get(t, id)
			if row.total > 0 {
				require.Equal(t, row.total, s.OutputBytes, "the real total is told")
				require.Equal(t, 0, s.exitCode())
			}
			require.Greater(t, s.OutputBytes, int64(3*bound))
			require.GreaterOrEqual(t, s.DroppedBytes, s.OutputBytes-bound)
			require.LessOrEqual(t, s.DroppedBytes, s.OutputBytes-bound/2, "about the limit is kept")
			raw := c.log(t, id)
			require.Len(t, raw, int(s.OutputBytes-s.DroppedBytes))
			if row.tail != "" {
				require.True(t, strings.HasSuffix(string(raw), row.tail), "the newest is kept")
			} else {
				require.Empty(t, strings.Trim(string(raw), "y\n"))
			}
			o := c.read(t, id, "offset=0&limit_bytes=100")
			require.Equal(t, s.DroppedBytes, o.DroppedBytes)
			require.GreaterOrEqual(t, o.Offset, s.DroppedBytes)
			require.Less(t, o.Offset, s.DroppedBytes+4)
			c.purge(t, id)
			eventually(t, 5*time.Second, "the disk is given back", func() bool { return d.diskBytes(t) <= disk+4096 })
		})
	}
}
