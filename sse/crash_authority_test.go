package sse_test

import (
	"fmt"
	"sync"

	"afoot/sse"
)

// authority is what announces: it knows the ends at once, keeps facts of them on the tape
// of the hub, and tells the hub of a change once its fact is kept, one after the other.
type authority struct {
	hub *sse.Hub
	p   *tape

	mu     sync.Mutex // the hub asks at any time
	ends   []*end
	owners map[string]int // how many each agent was so far
	line   []change
	marks  int
	// trouble says that it does not wait for the tape, as with a disk that can't be written.
	trouble bool
}

// end is what is known of one end.
type end struct {
	key, agent, owner string
	// claims counts the answers under way.
	claims                           int
	announced, heard, reported, gone bool
	// over says that it was reported or removed once, also if a crash undid that.
	over bool
	// withdrawn is what the hub was told last, and lastWord that its owner is gone, or that
	// it never was. What is flown was perhaps on its way, unheard: it is not held any more.
	withdrawn, lastWord, flown bool
}

// change is something for the hub, once the fact that is its mark is kept.
type change struct {
	mark string
	tell func()
}

func agents() []string { return []string{"a", "b"} }

func (a *authority) find(key string) *end {
	for _, e := range a.ends {
		if e.key == key {
			return e
		}
	}
	return nil
}

func (a *authority) answered(key string) (delivered, underway bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.find(key)
	if e == nil || e.gone {
		return false, false
	}
	return e.reported, e.claims > 0
}

func (a *authority) owner(agent string) string { return fmt.Sprint(agent, "#", a.owners[agent]) }

// emit puts a change in line, behind all facts so far.
func (a *authority) emit(tell func()) {
	a.marks++
	mark := fmt.Sprint("mark ", a.marks)
	a.p.fact(mark)
	a.line = append(a.line, change{mark, tell})
}

// settle is an end, which so many answers have waited for.
func (a *authority) settle(agent string, claims int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := &end{key: fmt.Sprint("k", len(a.ends)+1), agent: agent, owner: a.owner(agent), claims: claims}
	a.ends = append(a.ends, e)
	a.p.fact("ended " + e.key)
	a.announce(e)
}

func (a *authority) announce(e *end) {
	if e.announced || e.claims > 0 || e.reported || e.gone {
		return
	}
	e.announced = true
	a.emit(func() { a.append(e) })
}

// append tells the hub of an end, unless it is too late. That the hub was told is kept
// behind it.
func (a *authority) append(e *end) {
	a.mu.Lock()
	late := e.reported || e.claims > 0
	e.announced = !late || e.reported
	a.mu.Unlock()
	if late {
		return
	}
	a.hub.Append("s", sse.Notice{Key: e.key, Owner: e.owner, Agent: e.agent, Event: "task.done", Data: []byte(e.key)})
	a.mu.Lock()
	defer a.mu.Unlock()
	if !e.gone {
		e.heard = true
		a.p.fact("heard " + e.key)
	}
}

func (a *authority) withdraw(e *end) {
	e.withdrawn = true
	a.hub.Withdraw("s", e.key)
}

// begin is an answer with the end on its way.
func (a *authority) begin(e *end) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.claims++
	if e.claims == 1 && e.announced && !e.reported {
		a.emit(func() { a.hub.Hold("s", e.key) })
	}
}

// deliver is that it was written; without a claim it is an ack that came late.
func (a *authority) deliver(e *end) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.claims = max(0, e.claims-1)
	if !e.reported {
		e.reported, e.over = true, true
		a.p.fact("reported " + e.key)
		a.emit(func() { a.withdraw(e) })
	}
}

// lose is that it was not.
func (a *authority) lose(e *end) {
	a.mu.Lock()
	defer a.mu.Unlock()
	had := e.claims
	e.claims = max(0, had-1)
	switch {
	case had == 0 || e.claims > 0 || e.reported:
	case e.announced:
		a.emit(func() { a.hub.Due("s", e.key) })
	default:
		a.announce(e)
	}
}

// evict lets a record go: its notice stays.
func (a *authority) evict(e *end) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.claims == 0 && (e.heard || e.reported) {
		e.gone = true
		a.p.fact("gone " + e.key)
	}
}

// dispose ends an agent's owner, up to the last word to the hub. A successor goes on.
func (a *authority) dispose(agent string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	owner := a.owner(agent)
	a.owners[agent]++
	a.p.fact("ending " + owner)
	a.remove(owner)
}

// remove takes an owner's records out, all or none.
func (a *authority) remove(owner string) {
	a.p.fact("gone " + owner)
	for _, e := range a.ends {
		if e.owner == owner && !e.gone {
			e.gone, e.over, e.claims = true, true, 0
			a.emit(func() { a.withdraw(e) })
		}
	}
	a.emit(func() { a.drop(owner) })
}

func (a *authority) drop(owner string) {
	a.hub.DropOwner("s", owner)
	for _, e := range a.ends {
		e.lastWord = e.lastWord || e.owner == owner
	}
}

// tell gives the hub the next change if its fact is kept, and reports whether any is left.
func (a *authority) tell() (left bool) {
	if len(a.line) > 0 && (a.trouble || a.p.is(a.line[0].mark)) {
		next := a.line[0]
		a.line = a.line[1:]
		next.tell()
	}
	return len(a.line) > 0
}

// restart takes up what is on a tape, and makes a new hub true to it.
func (a *authority) restart(hub *sse.Hub, p *tape) {
	a.hub, a.p, a.line = hub, p, nil
	ending := map[string]bool{}
	for _, e := range a.ends {
		e.claims = 0
		e.reported, e.heard = p.is("reported "+e.key), p.is("heard "+e.key)
		e.announced = e.heard
		e.lastWord = !p.is("ended "+e.key) || p.is("gone "+e.owner)
		e.gone = e.lastWord || p.is("gone "+e.key)
		e.withdrawn = e.withdrawn && e.reported && !e.gone // else what was written stays for replay
		ending[e.owner] = p.is("ending " + e.owner)
	}
	for _, e := range a.ends { // no request is taken before this is over
		if !e.announced && !e.reported && !e.gone && !ending[e.owner] {
			e.announced = true
			a.append(e)
		}
	}
	for _, n := range hub.Kept() {
		e := a.find(n.Key)
		e.flown = true
		switch {
		case !e.gone && e.reported:
			a.withdraw(e)
		case e.gone && n.Pending && ending[e.owner]:
			a.drop(e.owner)
		}
	}
	for _, agent := range agents() { // ends of owners go on
		for i := range a.owners[agent] {
			if owner := fmt.Sprint(agent, "#", i); p.is("ending "+owner) && !p.is("gone "+owner) {
				a.remove(owner)
			}
		}
	}
}
