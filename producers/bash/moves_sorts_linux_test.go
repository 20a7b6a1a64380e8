package bash

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"afoot/registry"
)

// sorts are the commands, with their fields.
func sorts() map[string]func(n int) fields {
	return map[string]func(n int) fields{
		"print": func(n int) fields {
			return fields{"command": fmt.Sprintf("for i in {1..2000}; do echo line $i; ((i%%40)) || sleep .01; done; exit %d", n%200)}
		},
		"flood": func(n int) fields { return fields{"command": fmt.Sprintf("seq 300000; exit %d", n%200)} },
		"sleep": func(n int) fields {
			return fields{"command": fmt.Sprintf("sleep %d.%03d; exit %d", n%2, n*37%1000, n%200)}
		},
		"many": func(n int) fields {
			return fields{"command": fmt.Sprintf("for i in {1..60}; do /bin/true; sleep .005; done; exit %d", n%200)}
		},
		"trap": func(int) fields {
			return fields{"command": "trap 'echo term; sleep .7; echo bye; exit 9' TERM; echo up; while :; do sleep .05; done 2>/dev/null"}
		},
		"deaf":  func(int) fields { return fields{"command": "trap '' TERM; echo up; while :; do sleep .05; done"} },
		"time":  func(int) fields { return fields{"command": "echo up; exec sleep 601", "timeoutMs": 5000} },
		"input": func(int) fields { return fields{"command": "echo up; sleep .8; cat; exit 2", "stdin": "open"} },
		"split": func(int) fields {
			return fields{"command": "for i in {1..500}; do echo $i; echo $i >&2; ((i%20)) || sleep .01; done", "streams": "split"}
		},
		"left": func(int) fields { return fields{"command": "(while :; do echo x; sleep .01; done) & echo $!"} },
		"ghost": func(int) fields {
			return fields{"command": "(trap '' TERM; while :; do echo y; sleep .01; done) & echo $!"}
		},
		"sweep": func(int) fields {
			return fields{"command": "trap '' TERM; (echo up; while :; do sleep .05; done) & sleep .1; exit 6", "leftovers": "stop"}
		},
		"aside": func(int) fields {
			return fields{"command": "echo long; sleep .6; exit 8 #" + strings.Repeat("x", 2*maxInlineBytes)}
		},
		"silent": func(int) fields { return fields{"command": "sleep .5"} },
	}
}

func typed() []byte { return bytes.Repeat([]byte("0123456789abcde\n"), inputBytes/16) }

func lines(prefix string, n int) string {
	var text strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&text, "%s%d\n", prefix, i)
	}
	return text.String()
}

func (m *theater) check(t *mover) {
	status, detail, text := registry.StatusCompleted, fmt.Sprintf("exit code: %d", t.N%200), ""
	least, most := time.Duration(0), moverPatient
	since := t.Began
	switch t.Sort {
	case "print":
		text = lines("line ", 2000)
	case "flood":
		m.flooded(t)
		text = show(t.run)
	case "trap":
		status, detail, text = registry.StatusKilled, "exit code: 9", "up\nterm\nbye\n"
		since, least, most = t.Asked, 700*time.Millisecond, moverGrace+moverSlack
	case "deaf":
		status, detail, text = registry.StatusKilled, "signal: SIGKILL", "up\n"
		since, least, most = t.Asked, moverGrace, moverGrace+moverSlack
	case "time":
		status, detail, text = registry.StatusKilled, "timed out after 5000ms", "up\n"
		least, most = 5*time.Second, 5*time.Second+moverSlack
	case "input":
		detail, text = "exit code: 2", "up\n"+string(typed())
	case "split":
		detail, text = "exit code: 0", lines("", 500)
		if got := show(t.run.Stderr()); got != text {
			m.fail(t, "stderr is %d bytes, not %d", len(got), len(text))
		}
	case "left", "ghost":
		m.haunted(t)
		return
	case "sweep":
		detail, text = "exit code: 6", "up\n"
	case "aside":
		detail, text = "exit code: 8", "long\n"
		if request, err := t.run.Request(); err != nil || !strings.Contains(string(request), "xxxx") {
			m.fail(t, "request %.50q, %v", request, err)
		}
	case "silent":
		detail = "exit code: 0"
	}
	if o := t.Outcome; o.Status != status || o.Detail != detail {
		m.fail(t, "%s, %q instead of %q", o.Status, o.Detail, detail)
	}
	if got := show(t.run); got != text {
		m.fail(t, "output of %d bytes instead of %d: %.60q", len(got), len(text), got)
	}
	if took := time.Duration(t.Ended - since); took < least || took > most {
		m.fail(t, "took %s, not %s to %s", took, least, most)
	}
}

// flooded looks at a log of which the head was dropped.
func (m *theater) flooded(t *mover) {
	all := lines("", 300_000)
	written, dropped := t.run.Size()
	if int(written) != len(all) || show(t.run) != all[dropped:] {
		m.fail(t, "%d of %d bytes, or others", written, len(all))
	}
}

// haunted looks at what an ended task has left.
func (m *theater) haunted(t *mover) {
	text := show(t.run)
	pid, err := strconv.Atoi(strings.TrimSuffix(strings.SplitN(text, "\n", 2)[0], "x"))
	if err != nil {
		for line := range strings.SplitSeq(text, "\n") {
			if pid, err = strconv.Atoi(line); err == nil {
				break
			}
		}
	}
	if err != nil {
		m.fail(t, "no number in %.60q", text)
		return
	}
	if o := t.Outcome; !strings.HasPrefix(o.Detail, "exit code: 0; ") || !strings.HasSuffix(o.Detail, " left running") {
		m.fail(t, "%q", o.Detail)
	}
	if t.Sort == "left" {
		if !alive(pid) || !t.run.Left() {
			m.fail(t, "the leftover is gone")
		}
		t.Asked = 0
	}
	gone := t.run.StopLeftovers("")
	if gone != nil {
		select {
		case <-gone:
		case <-time.After(moverPatient):
			m.fail(t, "the leftover does not end")
		}
	}
	if alive(pid) || t.run.Left() {
		m.fail(t, "the leftover lives")
	}
}
