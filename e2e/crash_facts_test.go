package e2e

import (
	"fmt"
	"slices"
	"strings"
)

// fact is what is known of one task.
type fact struct {
	script outcome
	id     string
	key    string // "": none
	label  string
	agent  *owner // nil: the session's default one
	body   map[string]any
	life   int // in which it was started

	end      *snapshot
	asked    bool // a kill was sent
	killed   bool // and answered before the end: nobody hears of it
	may      bool // a look that consumes was sent: it may be reported
	reported int  // since which connection it is known to be so; 0: not known
	cursor   int64
	next     int64   // where it is if the last answer counted
	said     []piece // by reads
	errs     []piece // of the second stream
	gone     bool    // an answer said so
	purging  bool    // it was asked for
	touched  bool    // in this life
}

// piece is output that a read gave.
type piece struct {
	at   int64
	text string
}

// outcome is a kind of command, and how it ends by itself.
type outcome struct {
	name, text   string
	code         int
	ends         bool
	stdin, split bool
	nets         []string // those that reach all of it; nil: all
}

func (o outcome) fits(net string) bool { return o.nets == nil || slices.Contains(o.nets, net) }

// M is the length of a sleep that marks the life, L the label.
var fates = []outcome{
	{name: "short", text: `echo L; exit 3`, code: 3, ends: true},
	{name: "soon", text: `echo L; sleep 0.05; echo end; exit 4`, code: 4, ends: true},
	{name: "much", text: `seq 1 30000; exit 1`, code: 1, ends: true},
	{name: "split", text: `echo L; echo L >&2; sleep 0.02; echo end; echo end >&2; exit 2`, code: 2, ends: true, split: true},
	{name: "leaves", text: `sleep M >/dev/null 2>&1 & echo L`, ends: true},
	{name: "holds", text: `sleep 1.2 & echo L; exit 3`, code: 3, ends: true}, // its output, beyond its end
	{name: "long", text: `echo L; sleep M`},
	{name: "printing", text: `for ((i=0;;i++)); do echo "L $i"; sleep 0.02; done`},
	{name: "deaf", text: `trap "" TERM; echo L; sleep M; sleep M; sleep M`},
	{name: "tree", text: `(sleep M & sleep M) | cat & echo L; wait`},
	{name: "sessions", text: `setsid sleep M & setsid bash -c 'trap "" TERM; sleep M; sleep M' & echo L; wait`, nets: []string{"cgroup", "subreaper"}},
	{name: "naked", text: `env -i setsid -f setsid -f sleep M; echo L; sleep M`, nets: []string{"cgroup"}},
	{name: "input", text: `exec cat`, stdin: true},
	{name: "both", text: `for ((i=0;;i++)); do echo "L $i"; echo "L $i" >&2; sleep 0.03; done`, split: true},
}

// known notes that an answer said for good that a task is reported.
func (p *party) known(f *fact) {
	if f.reported == 0 {
		f.reported = p.connection
	}
}

// see compares what an answer tells with what is known.
func (p *party) see(f *fact, s snapshot) error {
	if f.reported > 0 && !s.Reported {
		return fmt.Errorf("%s %s is not reported any more", f.id, f.label)
	}
	if s.Reported {
		if !f.may && !f.asked && (f.agent == nil || !f.agent.may) {
			return fmt.Errorf("%s %s is reported, and nobody was told", f.id, f.label)
		}
		p.known(f)
	}
	return p.seeIn(f, s)
}

// seeIn is see for answers that already show the state which they bring about.
func (p *party) seeIn(f *fact, s snapshot) error {
	agent := "default"
	if f.agent != nil {
		agent = f.agent.id
	}
	if s.ID != f.id || s.Label != f.label || s.OwnerSession != p.name || s.Agent != agent {
		return fmt.Errorf("%s %s of %s is now %+v", f.id, f.label, agent, s)
	}
	if s.DroppedBytes != 0 {
		return fmt.Errorf("%s %s has lost %d bytes", f.id, f.label, s.DroppedBytes)
	}
	if f.end != nil {
		if !f.end.same(s) {
			return fmt.Errorf("%s %s ended as %+v and has now ended as %+v", f.id, f.label, *f.end, s)
		}
		return nil
	}
	if !s.terminal() {
		if f.life != p.w.life {
			return fmt.Errorf("%s %s is said to be %s and is of an earlier life", f.id, f.label, s.Status)
		}
		return nil
	}
	if !p.plausible(f, s) {
		return fmt.Errorf("%s %s of life %d ended as %+v: that is not true", f.id, f.label, f.life, s)
	}
	f.end, f.touched = &s, true
	return nil
}

// plausible says whether a task can have ended like that.
func (p *party) plausible(f *fact, s snapshot) bool {
	byItself := f.script.ends && s.Status == "completed" && s.exitCode() == f.script.code &&
		strings.HasPrefix(s.Detail, fmt.Sprintf("exit code: %d", f.script.code))
	earlier := f.life != p.w.life
	switch s.Detail {
	case lostDetail:
		return earlier && s.Status == "failed" && len(s.Result) == 0
	case "daemon shut down":
		return s.Status == "killed" && p.w.inOrder[f.life]
	}
	return byItself || s.Status == "killed" && (f.asked || f.agent != nil && f.agent.may)
}
