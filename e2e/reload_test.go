package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// replaceable makes the daemon run a copy of the binary, and gives what puts another
// copy in its place.
func (d *daemon) replaceable(t *testing.T) (replace func()) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "afoot")
	for _, name := range []string{"one", "two"} {
		copyBinary(t, filepath.Join(dir, name))
	}
	n := 0
	replace = func() {
		n++
		fresh := filepath.Join(dir, "fresh")
		require.NoError(t, os.Link(filepath.Join(dir, []string{"one", "two"}[n%2]), fresh))
		require.NoError(t, os.Rename(fresh, path))
	}
	replace()
	d.argv = []string{path, "serve"}
	return replace
}

// isOnDisk says whether the daemon runs the file that now is at the binary's path.
func (d *daemon) isOnDisk(t *testing.T) bool {
	t.Helper()
	now, err := os.Stat(fmt.Sprintf("/proc/%d/exe", d.cmd.Process.Pid))
	if err != nil {
		return false
	}
	disk, err := os.Stat(d.argv[0])
	require.NoError(t, err)
	return os.SameFile(now, disk)
}

// reloads makes the daemon go on as the binary on disk, by command or by signal.
func (d *daemon) reloads(t *testing.T, bySignal bool) {
	t.Helper()
	if bySignal {
		require.NoError(t, d.cmd.Process.Signal(syscall.SIGUSR2))
	} else {
		out, errs, code := d.command("reload")
		require.Equal(t, 0, code, "%s%s", out, errs)
	}
	eventually(t, 20*time.Second, "it is what is on disk, and ready", func() bool {
		require.True(t, d.running(), "the same process goes on\n%s", d.logTail(4000))
		if !d.isOnDisk(t) {
			return false
		}
		res, err := d.http.Get("http://" + d.addr + "/readyz")
		if err != nil {
			return false
		}
		return res.StatusCode == http.StatusOK && res.Body.Close() == nil
	})
	require.Len(t, d.watchdogs(), 1)
}

// Whatever its users do while the daemon hands over: no task ends of it, no end and no
// byte is lost, no call fails, and everything is told once.
func TestReload(t *testing.T) {
	t.Parallel()
	w := newCrasher(t)
	w.reloading = true
	w.net = w.nets[w.r.IntN(len(w.nets))]
	w.length = odd(t)
	w.d.env = append(w.d.env, "AFOOT_NET="+w.net)
	w.d.nextLife(0)
	replace := w.d.replaceable(t)
	w.d.again()
	for _, p := range w.parties {
		// A kept connection may be closed in the moment in which it is used.
		p.c.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	w.left.Store(1 << 30)
	w.each((*party).check)
	var acting errgroup.Group
	for _, p := range w.parties {
		acting.Go(p.act)
	}
	for n := range rounds(t, 4) {
		pause := time.NewTimer(time.Duration(w.r.IntN(300)) * time.Millisecond)
		<-pause.C
		replace()
		w.d.reloads(t, n%2 == 1)
	}
	w.enough.Store(true)
	require.NoError(t, acting.Wait(), "AFOOT_E2E_SEED=%d", w.seed)
	w.each((*party).settle)
	w.rest()
}

// insist makes a call until it is answered: one that is refused because of a reload may
// be sent again at once.
func (p *party) insist(c *client, method, path string, body any, headers ...string) (*answer, error) {
	deadline := time.Now().Add(patient(10 * time.Second))
	for {
		a, err := c.call(p.w.t.Context(), method, path, body, headers...)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || time.Now().After(deadline) {
			return a, nil
		}
	}
}

// resume connects again where a stream has ended, which says so.
func (p *party) resume() error {
	select {
	case <-p.stream.ended:
	default:
		return nil
	}
	if err := p.hear(); err != nil {
		return err
	}
	all := p.stream.all()
	if len(all) == 0 || all[len(all)-1].name != "bye" || !strings.Contains(all[len(all)-1].data, `"reload"`) {
		return fmt.Errorf("a stream ended with %v", all)
	}
	return p.connect()
}

// settle ends what runs and takes the ends.
func (p *party) settle() error {
	for _, f := range p.tasks {
		for deadline := time.Now().Add(patient(20 * time.Second)); !f.gone && f.end == nil; {
			if !f.script.ends && !f.asked {
				if err := p.kill(f); err != nil {
					return err
				}
			}
			if err := p.get(f); err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s %s does not end", f.id, f.label)
			}
		}
	}
	p.stream.cut()
	return p.hear()
}

// Ends at every moment around a hand-over have their codes, what prints goes on to, what
// reads goes on to be read from, and who waits is answered at once.
func TestReloadKeepsTasks(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := prepare(t, net, "AFOOT_MAX_TASKS_PER_OWNER=60")
			replace := d.replaceable(t)
			d.launch()
			d.ready()
			d.keepsTasks(t, replace)
		})
	}
}

func (d *daemon) keepsTasks(t *testing.T, replace func()) {
	t.Helper()
	c := d.as("reload")
	count := `for ((i=0;i<100000;i++)); do echo $i; sleep 0.005; done`
	printing := c.start(t, count).ID
	both := c.start(t, `for ((i=0;i<100000;i++)); do echo $i; echo $i >&2; sleep 0.01; done`, fields{"streams": "split"}).ID
	echo := c.start(t, `cat; exit 4`, fields{"stdin": "open"}).ID
	quiet := c.open(t, fields{"label": "mine"}).start(t, `trap "" TERM; echo up; sleep 987; sleep 989`).ID
	c.says(t, quiet, "up")
	left := c.start(t, `sleep 991 >/dev/null 2>&1 & echo left; exit 5`).ID
	leftBehind := c.over(t, left)
	events := c.subscribe(t, "", "")
	events.done(t, 1)
	var told []event
	var said strings.Builder
	var ended []string
	base := 0
	for n := range 3 {
		line := fmt.Sprintf("before %d\n", n)
		require.Equal(t, http.StatusOK, c.do(t, http.MethodPost, "/tasks/"+echo+"/input", fields{"data": line}).status)
		said.WriteString(line)
		codes := map[string]int{}
		for i := range 12 {
			code := 10*n + i
			id := c.start(t, fmt.Sprintf(`sleep %f; echo done; exit %d`, rand.Float64()/2, code)).ID
			codes[id] = code
			ended = append(ended, id)
		}
		var waits errgroup.Group
		for _, path := range []string{quiet + "/output?offset=3&wait=true", echo + "/output?wait=true&offset=" + strconv.Itoa(said.Len())} {
			waits.Go(func() error {
				a, err := c.call(t.Context(), http.MethodGet, "/tasks/"+path+"&timeout_ms=80000", nil)
				if err != nil {
					return err
				}
				var o output
				if err := json.Unmarshal(a.body, &o); err != nil || a.status != http.StatusOK || o.Snapshot.Status != "running" || a.header.Get("Retry-After") != "0" {
					return fmt.Errorf("%v %s: %w", a.header, a, err)
				}
				return nil
			})
		}
		eventually(t, 5*time.Second, "both wait", func() bool { return c.get(t, quiet).Waiters == 1 && c.get(t, echo).Waiters == 1 })
		replace()
		d.reloads(t, n%2 == 0)
		require.NoError(t, waits.Wait())
		events.over(t, 5*time.Second)
		all := events.all()
		require.Equal(t, "bye", all[len(all)-1].name)
		require.JSONEq(t, `{"reason":"reload"}`, all[len(all)-1].data)
		told = append(told, events.all("task.done")...)
		require.Empty(t, events.all("gap"))
		events = c.subscribe(t, "", told[len(told)-1].id)
		line = fmt.Sprintf("after %d\n", n)
		require.Equal(t, http.StatusOK, c.do(t, http.MethodPost, "/tasks/"+echo+"/input", fields{"data": line}).status)
		said.WriteString(line)
		for id, code := range codes {
			s, text := c.finish(t, id)
			require.Equal(t, code, s.exitCode(), "%+v", s)
			require.Equal(t, "completed", s.Status)
			require.Equal(t, "done\n", text)
		}
		for _, id := range []string{printing, both, echo, quiet} {
			require.Equal(t, "running", c.get(t, id).Status)
		}
		require.True(t, leftBehind.same(c.get(t, left)))
		require.Len(t, d.aliveOf(left), 1)
		if n == 0 {
			base = d.descriptors()
		}
	}
	eventually(t, 10*time.Second, "no descriptor is left of a hand-over", func() bool { return d.descriptors() <= base+3 })
	require.Equal(t, http.StatusOK, c.do(t, http.MethodPost, "/tasks/"+echo+"/input", fields{"close": true}).status)
	s, text := c.finish(t, echo)
	require.Equal(t, 4, s.exitCode())
	same(t, said.String(), text)
	for _, id := range []string{printing, both} {
		require.Equal(t, "requested", c.kill(t, id).Outcome)
		c.over(t, id)
		counted(t, string(c.log(t, id)))
	}
	counted(t, c.read(t, both, "offset=0&stream=stderr").Text)
	require.Equal(t, "already-finished", c.kill(t, left).Outcome)
	d.gone(t, left, 5*time.Second)
	require.Equal(t, "killed", c.get(t, printing).Status)
	events.quiet(t, c)
	told = append(told, events.all("task.done")...)
	require.Empty(t, events.all("gap"))
	require.Subset(t, ids(t, told), ended)
	for i := range told[1:] {
		_, n := told[i].number(t)
		_, next := told[i+1].number(t)
		require.Equal(t, n+1, next, "each is told once, in order")
	}
	// The watchdog knows those that were handed over.
	d.die(t)
	eventually(t, orphaned, "nobody is left", func() bool { return len(d.alive()) == 0 })
	d.again()
	wasLost(t, c.get(t, quiet))
}

// counted checks that lines are 0, 1, 2 and so on; the last may be cut.
func counted(t *testing.T, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	require.Greater(t, len(lines), 3)
	for i, line := range lines[:len(lines)-1] {
		require.Equal(t, strconv.Itoa(i), line)
	}
}

// A binary or a configuration that is no good changes nothing, and the answer says why.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "env")
	require.NoError(t, os.WriteFile(file, []byte("AFOOT_HEARTBEAT=14s\n"), 0o600))
	d := prepare(t, "AFOOT_ENV_FILE="+file)
	replace := d.replaceable(t)
	d.launch()
	d.ready()
	c := d.as("refused")
	live := c.start(t, `echo up; sleep 993`).ID
	c.says(t, live, "up")
	events := c.subscribe(t, "", "")
	put := func(text string, mode os.FileMode) func() {
		return func() {
			require.NoError(t, os.Remove(d.argv[0]))
			require.NoError(t, os.WriteFile(d.argv[0], []byte(text), mode))
		}
	}
	for name, harm := range map[string]func(){
		"a bad value":         func() { require.NoError(t, os.WriteFile(file, []byte("AFOOT_HEARTBEAT=soon\n"), 0o600)) },
		"an unknown variable": func() { require.NoError(t, os.WriteFile(file, []byte("AFOOT_GRACE=1s\n"), 0o600)) },
		"it fails":            put("#!/bin/sh\necho no good >&2; exit 1\n", 0o755),
		"it is none":          put("\x7fELF", 0o755),
		"not executable":      put("#!/bin/sh\n", 0o600),
		"it is gone":          func() { require.NoError(t, os.Remove(d.argv[0])) },
	} {
		t.Run(name, func(t *testing.T) {
			harm()
			_, errs, code := d.command("reload")
			require.NotZero(t, code)
			require.NotEmpty(t, errs)
			require.Equal(t, "running", c.get(t, live).Status)
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			replace()
		})
	}
	require.Empty(t, events.all("bye"))
	d.reloads(t, false)
	require.Equal(t, "running", c.get(t, live).Status)
}
