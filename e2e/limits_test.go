package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNiceIsApplied(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("nice")
			_, text := c.finish(t, c.start(t, `nice`).ID)
			base, err := strconv.Atoi(strings.TrimSpace(text))
			require.NoError(t, err)
			for _, level := range []int{0, 7, 19} {
				id := c.start(t, `nice; sh -c nice; (exec nice); ps -o ni= -p $$ | tr -d ' '`, fields{"nice": level}).ID
				s, text := c.finish(t, id)
				want := fmt.Sprintf("%d\n", min(base+level, 19))
				require.Equal(t, strings.Repeat(want, 4), text)
				require.Equal(t, 0, s.exitCode())
			}
			prio, err := syscall.Getpriority(syscall.PRIO_PROCESS, d.cmd.Process.Pid)
			require.NoError(t, err)
			require.Equal(t, base, 20-prio, "the daemon's own has not changed")
			if syscall.Getuid() == 0 {
				_, text := c.finish(t, c.start(t, `nice`, fields{"nice": -5}).ID)
				require.Equal(t, fmt.Sprintf("%d\n", base-5), text)
			}
			for _, bad := range []any{20, -21, 1.5, "7", true, 1000} {
				c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"nice": bad})).refused(t, http.StatusBadRequest, "invalid")
			}
		})
	}
}

// Where a limit can be had it holds, and where not the start is refused with the reason.
func TestLimitsHoldOrAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("limits")
			next := 1
			for name, row := range map[string]struct {
				value   int
				command string
				holds   func(text string)
			}{
				"memoryMaxBytes": {32 << 20, `echo up; head -c 200000000 /dev/zero | tail -c 150000000 | wc -c; echo "${PIPESTATUS[*]}"`, func(text string) {
					require.Contains(t, text, "up\n")
					require.NotContains(t, text, "150000000\n")
					require.NotContains(t, text, "\n0 0 0\n")
				}},
				"pidsMax": {8, `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.871 & done 2>/dev/null; jobs -r | wc -l; exit 0`, func(text string) {
					require.NotContains(t, text, "12\n")
				}},
			} {
				for _, bad := range []any{0, -1, 1.5, "8", true} {
					c.do(t, http.MethodPost, "/tasks", startBody("true", fields{name: bad})).refused(t, http.StatusBadRequest, "invalid")
				}
				a := c.do(t, http.MethodPost, "/tasks", startBody(row.command, fields{name: row.value}))
				if a.status == http.StatusCreated {
					require.Equal(t, "cgroup", netName(net), "only a cgroup can do it")
					var s snapshot
					a.into(t, &s)
					require.Equal(t, numbered(next), s.ID)
					next++
					_, text := c.finish(t, s.ID)
					row.holds(text)
					continue
				}
				text := a.refused(t, http.StatusBadRequest, "invalid")
				require.Contains(t, text, name)
				require.Contains(t, text, "control group", "the reason")
			}
			require.Equal(t, numbered(next), c.start(t, "true").ID, "a refusal burns no id")
		})
	}
}
