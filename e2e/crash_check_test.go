package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
)

// check holds everything that was told in earlier lives against what the daemon says
// now. It may be cut short by nothing: the daemon lives.
func (p *party) check() error {
	return errors.Join(p.checkAgents(), p.checkTasks(), p.checkLost(), p.checkLogs(), p.checkNotices(), p.checkCursors())
}

// list looks at everything, and gives it by id.
func (p *party) list() (map[string]snapshot, error) {
	all := map[string]snapshot{}
	after := ""
	for {
		a, err := p.call(p.c, http.MethodGet, "/tasks?limit=1000"+after, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tasks []snapshot
			Next  string
		}
		if err := expect(a, &page, http.StatusOK); err != nil {
			return nil, err
		}
		for _, s := range page.Tasks {
			all[s.ID] = s
		}
		if page.Next == "" {
			break
		}
		after = "&after=" + page.Next
	}
	for _, f := range p.tasks {
		s, found := all[f.id]
		switch {
		case !found && !f.gone && !f.purging && (f.agent == nil || !f.agent.may):
			return nil, fmt.Errorf("%s %s is not in the list", f.id, f.label)
		case !found:
		case f.gone:
			return nil, fmt.Errorf("%s %s is gone, and in the list", f.id, f.label)
		default:
			if err := p.see(f, s); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// checkTasks compares the records.
func (p *party) checkTasks() error {
	all, err := p.list()
	if err != nil {
		return err
	}
	for _, f := range p.tasks {
		s, found := all[f.id]
		if found {
			if !s.terminal() {
				return fmt.Errorf("%s %s runs on", f.id, f.label)
			}
			if f.killed && !s.Reported {
				return fmt.Errorf("%s %s was killed by its owner, and is not reported", f.id, f.label)
			}
			delete(all, f.id)
			continue
		}
		if !f.gone || f.touched {
			a, err := p.call(p.c, http.MethodGet, "/tasks/"+f.id, nil)
			if err == nil {
				err = expect(a, nil, http.StatusGone)
			}
			if err != nil {
				return fmt.Errorf("%s %s was purged: %w", f.id, f.label, err)
			}
		}
		f.gone, f.touched = true, false
	}
	// What is left was started by those who heard nothing.
	for id, s := range all {
		at := -1
		for i, f := range p.lost {
			if f.label == s.Label {
				at = i
			}
		}
		if at < 0 {
			return fmt.Errorf("%s %q was started by nobody, or twice", id, s.Label)
		}
		f := p.lost[at]
		p.lost = append(p.lost[:at], p.lost[at+1:]...)
		f.id = id
		p.tasks = append(p.tasks, f)
		err := p.w.fresh(id, 0)
		if err == nil {
			err = p.see(f, s)
		}
		if err == nil && f.key != "" {
			err = p.replay(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLost sends starts again that had no answer and left no record.
func (p *party) checkLost() error {
	lost := p.lost
	p.lost = nil
	for _, f := range lost {
		if f.key == "" || f.agent != nil && f.agent.may || !f.script.fits(p.w.net) {
			continue
		}
		f.life, f.may = p.w.life, false
		if err := p.started(f, false); err != nil {
			return fmt.Errorf("a start that was lost: %w", err)
		}
	}
	return nil
}

// checkLogs compares all bytes that were read of tasks that were touched.
func (p *party) checkLogs() error {
	for _, f := range p.tasks {
		if f.gone || f.end == nil || !f.touched {
			continue
		}
		text, err := p.log(f, "", f.said)
		if err != nil {
			return err
		}
		size := int64(len(text))
		if f.script.split {
			other, err := p.log(f, "?stream=stderr", f.errs)
			if err != nil {
				return err
			}
			size += int64(len(other))
		}
		if size != f.end.OutputBytes {
			return fmt.Errorf("%s %s has %d bytes of output, and logs of %d", f.id, f.label, f.end.OutputBytes, size)
		}
		if f.script.ends && f.end.Status == "completed" && f.script.name != "much" && !strings.HasPrefix(text, f.label+"\n") {
			return fmt.Errorf("%s %s: its log is %q", f.id, f.label, text)
		}
		a, err := p.call(p.c, http.MethodGet, fmt.Sprintf("/tasks/%s/output?offset=%d", f.id, len(text)), nil)
		if err != nil {
			return err
		}
		var o output
		if err := expect(a, &o, http.StatusOK); err != nil || !o.EOF || o.Text != "" {
			return fmt.Errorf("%s %s: behind its end is %s: %w", f.id, f.label, a, err)
		}
		f.touched = false
	}
	return nil
}

// log gives the bytes of a stream, which hold all that was read of it.
func (p *party) log(f *fact, query string, said []piece) (string, error) {
	a, err := p.call(p.c, http.MethodGet, "/tasks/"+f.id+"/log"+query, nil)
	if err == nil {
		err = expect(a, nil, http.StatusOK)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", f.id, f.label, err)
	}
	text := string(a.body)
	for _, piece := range said {
		if end := piece.at + int64(len(piece.text)); end > int64(len(text)) || text[piece.at:end] != piece.text {
			return "", fmt.Errorf("%s %s: %d bytes were read at %d that are not those of the log, which has %d: %.100q",
				f.id, f.label, len(piece.text), piece.at, len(text), piece.text)
		}
	}
	return text, nil
}

// checkCursors looks where the cursors of some tasks are, and moves them.
func (p *party) checkCursors() error {
	for i := range p.tasks {
		if f := p.tasks[len(p.tasks)-1-i]; !f.gone && i < 10 && (f.cursor > 0 || f.next > 0) {
			if err := p.acknowledge(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// ear is what a session hears.
type ear struct {
	connection int // counts them, from 1
	stream     *stream
	lastID     string
	epoch      string
	heard      int // of the open stream
	resumed    bool
	byNumber   map[uint64]string
	byTask     map[string]uint64
}

func (e *ear) init() {
	e.byNumber, e.byTask = map[uint64]string{}, map[string]uint64{}
	e.connection = 1
}

// connect opens the stream behind the last notice that came.
func (p *party) connect() error {
	p.connection++
	s, a, err := p.c.listen("/events", p.lastID)
	for p.w.reloading && a != nil && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "0" {
		s, a, err = p.c.listen("/events", p.lastID) // it may be sent again at once
	}
	if p.w.dying.Load() && (err != nil || a != nil) {
		return errOver
	}
	if err != nil || a != nil {
		return fmt.Errorf("stream: %s: %w", a, err)
	}
	p.stream, p.heard, p.resumed = s, 0, p.lastID != ""
	return nil
}

func (p *party) cutAndResume() error {
	if p.lastID == "" {
		return nil // what is lost on the way can't be asked for without a place
	}
	p.stream.cut()
	if err := p.hear(); err != nil {
		return err
	}
	return p.connect()
}

// listenToTheEnd takes the last of a life.
func (p *party) listenToTheEnd() {
	t := p.w.t
	p.stream.over(t, 10*time.Second)
	assert.NoError(t, p.hear(), "life %d, AFOOT_E2E_SEED=%d", p.w.life, p.w.seed)
}

// hear takes what has come since the last time.
func (p *party) hear() error {
	events := p.stream.all()
	for _, e := range events[p.heard:] {
		p.heard++
		switch e.name {
		case "gap":
			return fmt.Errorf("a gap after %q: %s", p.lastID, e.data)
		case "task.done":
			if err := p.told(e); err != nil {
				return fmt.Errorf("%s: after %s came %s %.300s: %w", p.name, p.lastID, e.id, e.data, err)
			}
			p.lastID, p.resumed = e.id, true
		}
	}
	return nil
}

// told notes a notice.
func (p *party) told(e event) error {
	var n notice
	if err := json.Unmarshal([]byte(e.data), &n); err != nil {
		return err
	}
	epoch, number, err := place(e.id)
	if err != nil {
		return err
	}
	if p.epoch != "" && epoch != p.epoch {
		return fmt.Errorf("the epoch was %s", p.epoch)
	}
	p.epoch = epoch
	id := n.Task.ID
	if p.resumed {
		if _, last, err := place(p.lastID); err != nil || number <= last {
			return errors.New("it is no later one")
		}
	}
	if was, found := p.byTask[id]; found && was != number {
		return fmt.Errorf("it was told as number %d", was)
	}
	if was, found := p.byNumber[number]; found && was != id {
		return fmt.Errorf("that number was %s", was)
	}
	p.byTask[id], p.byNumber[number] = number, id
	for _, f := range append(p.tasks, p.lost...) {
		if f.id != id && f.label != n.Task.Label {
			continue
		}
		switch {
		case f.killed:
			return errors.New("it was killed by its owner")
		case f.reported > 0 && f.reported < p.connection:
			return fmt.Errorf("it was reported in connection %d, and this is %d", f.reported, p.connection)
		case f.agent != nil && f.agent.gone && f.agent.since < p.connection:
			return fmt.Errorf("its agent was gone in connection %d, and this is %d", f.agent.since, p.connection)
		case !n.Task.terminal() || n.Task.Reported:
			return errors.New("it is no end, or reported")
		}
		if f.id == "" {
			return nil // its start had no answer
		}
		return p.seeIn(f, n.Task)
	}
	return errors.New("nobody started it")
}

// checkNotices waits until every end is told that is not reported.
func (p *party) checkNotices() error {
	if err := p.connect(); err != nil {
		return err
	}
	deadline := time.Now().Add(patient(10 * time.Second))
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := p.hear(); err != nil {
			return err
		}
		var missing []string
		for _, f := range p.tasks {
			if _, told := p.byTask[f.id]; !told && !f.gone && f.end != nil && f.life != p.w.life && f.reported == 0 && !f.purging {
				missing = append(missing, f.id+" "+f.label)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nobody was told of %v; last was %s", missing, p.lastID)
		}
		<-tick.C
	}
}
