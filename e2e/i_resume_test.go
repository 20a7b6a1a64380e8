package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestI1ResumeWithoutHoleOrTwin(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	for _, row := range []struct{ before, during int }{{1, 5}, {3, 5}, {4, 1}, {2, 0}, {1, 40}} {
		c := d.as(fmt.Sprintf("i1-%d-%d", row.before, row.during))
		events := c.subscribe(t, "", "")
		c.ends(t, row.before)
		k := events.done(t, row.before)[row.before-1]
		events.cut()
		want := c.ends(t, row.during)

		again := c.subscribe(t, "", k.id)
		want = append(want, c.ends(t, 2)...) // then live
		told := again.done(t, len(want))
		require.Equal(t, want, ids(t, told))
		_, last := k.number(t)
		for _, e := range told {
			_, n := e.number(t)
			require.Equal(t, last+1, n)
			last = n
		}
		require.Empty(t, again.all("gap"))
		again.cut()

		// Every earlier place can be resumed as well, however often.
		for skip := range told {
			back := c.subscribe(t, "", told[skip].id)
			require.Equal(t, want[skip+1:], ids(t, back.done(t, len(told)-skip-1)))
			back.cut()
			if skip > 6 {
				break
			}
		}
	}
}

func TestI1CutInsideAnEvent(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("i1")
	first := c.subscribe(t, "", "")
	c.ends(t, 1)
	k := first.done(t, 1)[0]
	first.cut()
	_, kn := k.number(t)

	w, err := d.dial()
	require.NoError(t, err)
	require.NoError(t, w.ask(c, "/events", "Last-Event-ID: "+k.id))
	want := c.ends(t, 1)
	for {
		line, err := w.r.ReadString('\n')
		require.NoError(t, err)
		if strings.HasPrefix(line, "id:") {
			break // the blank line was never seen: the event was not dispatched
		}
	}
	require.NoError(t, w.cut())
	want = append(want, c.ends(t, 4)...)

	again := c.subscribe(t, "", k.id)
	told := again.done(t, 5)
	require.Equal(t, want, ids(t, told))
	for i, e := range told {
		_, n := e.number(t)
		require.Equal(t, kn+uint64(i)+1, n)
	}
}

// Ends that were reported meanwhile are left out of a replay.
func TestI1ReplayLeavesReportedOut(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("i1")
	events := c.subscribe(t, "", "")
	first := c.ends(t, 1)
	k := events.done(t, 1)[0]
	ended := c.ends(t, 4)
	events.done(t, 5)
	events.cut()
	require.True(t, c.read(t, ended[1], "").EOF)
	eventually(t, 5*time.Second, "reported", func() bool { return c.get(t, ended[1]).Reported })
	again := c.subscribe(t, "", k.id)
	require.Equal(t, []string{ended[0], ended[2], ended[3]}, ids(t, again.quiet(t, c)))
	require.NotContains(t, ids(t, again.all("task.done")), first[0])
}

// A stream of one agent delivers, replays and takes that agent's notices alone.
func TestI1ResumeOfOneAgent(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	session := d.as("i1-agents")
	one, two := session.open(t, fields{}), session.open(t, fields{})
	ofOne := one.ends(t, 2)
	ofTwo := two.ends(t, 2)
	ofOne = append(ofOne, one.ends(t, 2)...)

	events := session.subscribe(t, "agent="+one.agent, "")
	told := events.done(t, 4)
	require.Equal(t, ofOne, ids(t, told))
	events.leave(t, session)
	ofOne = append(ofOne, one.ends(t, 1)...)
	ofTwo = append(ofTwo, two.ends(t, 1)...)
	again := session.subscribe(t, "agent="+one.agent, told[1].id)
	require.Equal(t, ofOne[2:], ids(t, again.quiet(t, one)))
	require.Empty(t, again.all("gap"))
	again.leave(t, session)
	watch := session.subscribe(t, "observe=true&agent="+two.agent, "")
	require.Equal(t, ofTwo, ids(t, watch.done(t, 3)))
	watch.cut()
	require.Equal(t, ofTwo, ids(t, session.subscribe(t, "", "").done(t, 3)), "still pending for the session")
}

func TestI2IdsThatCannotBePlaced(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_STREAMS_PER_SESSION=40")
	c := d.as("i2")
	events := c.subscribe(t, "", "")
	c.ends(t, 3)
	epoch, n := events.done(t, 3)[2].number(t)
	events.leave(t, c)
	for name, id := range map[string]string{
		"too large":         fmt.Sprintf("%s-%d", epoch, n+1000000),
		"beyond 64 bits":    epoch + "-99999999999999999999999",
		"another epoch":     "0123456789abcdef-1",
		"epoch with a tail": fmt.Sprintf("%sx-%d", epoch, n),
		"abc":               "abc",
		"number alone":      "2",
		"epoch alone":       epoch,
		"no number":         epoch + "-",
		"negative":          epoch + "--1",
		"fraction":          epoch + "-1.5",
		"signed":            epoch + "-+1",
		"hexadecimal":       epoch + "-0x1",
		"spaces":            epoch + " - 1",
		"10 KB of digits":   strings.Repeat("7", 10000),
		"epoch and 10 KB":   epoch + "-" + strings.Repeat("7", 10000),
		"path":              "../../etc/passwd",
		"markup":            "<script>alert(1)</script>",
		"not ASCII":         "é-1",
	} {
		t.Run(name, func(t *testing.T) {
			pending := c.ends(t, 2)
			again := c.subscribe(t, "", id)
			gap := again.await(t, 5*time.Second, 1, "gap", "task.done")[0]
			require.Equal(t, "gap", gap.name)
			var data struct {
				Reason string `json:"reason"`
			}
			require.NoError(t, json.Unmarshal([]byte(gap.data), &data), "%q", gap.data)
			require.NotEmpty(t, data.Reason)
			require.Equal(t, pending, ids(t, again.quiet(t, c)), "then what is pending, then live")
			require.Len(t, again.all("gap"), 1)
			again.leave(t, c)
		})
	}
}

func TestI2EvictedId(t *testing.T) {
	t.Parallel()
	const kept = 1000
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=40")
	c := d.as("i2")
	events := c.subscribe(t, "", "")
	var g errgroup.Group
	g.SetLimit(8)
	for range kept + 20 {
		g.Go(func() error {
			a, err := c.call(t.Context(), http.MethodPost, "/tasks", startBody("true"))
			if err == nil && a.status == http.StatusTooManyRequests {
				return fmt.Errorf("places do not come back: %s", a)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	told := events.await(t, 60*time.Second, kept+20, "task.done")
	events.leave(t, c)

	old := c.subscribe(t, "", told[2].id)
	require.Equal(t, "gap", old.await(t, 5*time.Second, 1, "gap", "task.done")[0].name)
	require.Empty(t, old.quiet(t, c), "nothing is pending")
	old.cut()

	young := c.subscribe(t, "", told[kept].id)
	require.Equal(t, ids(t, told[kept+1:]), ids(t, young.done(t, 19))[:19])
	require.Empty(t, young.all("gap"))
}

// With notices kept, an id of before a restart is answered by exactly those after it,
// numbers go on, and there is no gap.
func TestI2IdsOfBeforeARestart(t *testing.T) {
	t.Parallel()
	for _, how := range mortal {
		t.Run(how, func(t *testing.T) {
			d, end := serveUntil(t, how)
			c := d.as("i2")
			events := c.subscribe(t, "", "")
			want := c.ends(t, 4)
			old := events.done(t, 4)
			live := c.start(t, `echo up; sleep 979`).ID
			c.says(t, live, "up")
			events.cut()
			unheard := c.ends(t, 2)
			end()
			d.again()

			// Ends so shortly before that nobody was told yet come in any order.
			late := ids(t, c.subscribe(t, "observe=true", old[3].id).done(t, 3))
			require.ElementsMatch(t, append(unheard, live), late)
			want = append(want, late...)
			epoch, first := old[0].number(t)
			for i, e := range old {
				again := c.subscribe(t, "", e.id)
				told := again.done(t, len(want)-i-1)
				require.Equal(t, want[i+1:], ids(t, told))
				for k, e := range told {
					now, n := e.number(t)
					require.Equal(t, epoch, now)
					require.Equal(t, first+uint64(i+k)+1, n)
				}
				require.Empty(t, again.quiet(t, c)[len(told):])
				want = append(want, again.all("task.done")[len(told)].notice(t).Task.ID)
				require.Empty(t, again.all("gap"))
				again.leave(t, c)
			}
		})
	}
}

// Of notices that were not kept there is a gap: new ones are never taken for old ones.
func TestI2IdsOfALostJournal(t *testing.T) {
	t.Parallel()
	for _, how := range mortal {
		t.Run(how, func(t *testing.T) {
			d, end := serveUntil(t, how)
			c := d.as("i2")
			events := c.subscribe(t, "", "")
			c.ends(t, 4)
			old := events.done(t, 4)
			end()
			for _, path := range d.journalFiles(t) {
				require.NoError(t, os.Remove(path))
			}
			d.again()
			for _, e := range old[1:] {
				again := c.subscribe(t, "", e.id)
				require.Equal(t, "gap", again.await(t, 5*time.Second, 1, "gap", "task.done")[0].name)
				again.leave(t, c)
			}
			want := c.ends(t, 6)
			seen := c.subscribe(t, "", "")
			require.Equal(t, want, ids(t, seen.done(t, 6)))
			seen.cut()
			for _, e := range old {
				again := c.subscribe(t, "", e.id)
				require.Equal(t, "gap", again.await(t, 5*time.Second, 1, "gap", "task.done")[0].name, "%s is of a journal that is gone", e.id)
				again.cut()
			}
		})
	}
}

// An end that an answer held back when the daemon ended is told to whoever resumes behind
// it, for nobody knows whether the answer came through.
func TestI1AHeldEndOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(*testing.T, *daemon, func()){
		"kill -9": func(t *testing.T, d *daemon, _ func()) { t.Helper(); d.die(t); d.again() },
		"SIGTERM": func(t *testing.T, d *daemon, _ func()) {
			t.Helper()
			require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
			require.True(t, d.waitExit(20*time.Second))
			d.again()
		},
		"reload": func(t *testing.T, d *daemon, replace func()) { t.Helper(); replace(); d.reloads(t, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := prepare(t)
			replace := d.replaceable(t)
			d.launch()
			d.ready()
			c := d.as("i1-held")
			held := c.ends(t, 1)
			require.Equal(t, http.StatusOK, c.do(t, http.MethodGet, "/tasks/"+held[0]+"/output", nil, "Afoot-Ack: explicit").status)
			events := c.subscribe(t, "", "")
			other := c.ends(t, 1)
			told := events.done(t, 1)
			require.Equal(t, other, ids(t, told))
			events.cut()
			restart(t, d, replace)
			again := c.subscribe(t, "", told[0].id)
			require.Equal(t, held, ids(t, again.done(t, 1)))
			require.Equal(t, held, ids(t, again.quiet(t, c)), "once")
		})
	}
}
