package proc

import (
	"os"
	"slices"
	"sync"
)

// census looks at all processes of the machine. Whoever asks gets a pass that
// began after the question; those who ask during a pass share the next one, so
// that a thousand trees that are stopped at once cost no more than a few.
type census struct {
	// turn holds the one token of who is passing over /proc.
	turn chan struct{}
	// told, if not nil, hears of each pass before those who asked for it do.
	told func(p *pass)

	mu   sync.Mutex
	next *pass
}

// pass is one look at everybody, by session.
type pass struct {
	done     chan struct{}
	all      []stat
	sessions map[int][]stat
	err      error

	indexed  sync.Once
	byNumber map[int]stat
	children map[int][]stat
}

// index sorts those who are alive, for whoever asks first.
func (p *pass) index() {
	p.indexed.Do(func() {
		p.byNumber, p.children = make(map[int]stat, len(p.all)), make(map[int][]stat)
		for _, s := range p.all {
			if !s.dead {
				p.byNumber[s.pid] = s
				p.children[s.parent] = append(p.children[s.parent], s)
			}
		}
	})
}

// alive gives a live process by its number.
func (p *pass) alive(pid int) (stat, bool) {
	p.index()
	s, ok := p.byNumber[pid]
	return s, ok
}

// below lists who descends from a live process.
func (p *pass) below(pid int) (found []stat) {
	s, ok := p.alive(pid)
	if !ok {
		return nil
	}
	for todo := []stat{s}; len(todo) > 0; {
		s, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for _, child := range p.children[s.pid] {
			if child.start >= s.start && child.pid != pid { // else the number has changed hands during the look
				todo, found = append(todo, child), append(found, child)
			}
		}
	}
	return found
}

func (c *census) init() { c.turn = make(chan struct{}, 1) }

// session lists all processes of one session, dead ones too.
func (c *census) session(sid int) ([]stat, error) {
	p := c.look()
	return p.sessions[sid], p.err
}

// look gives a pass that began after it was asked for.
func (c *census) look() *pass {
	c.mu.Lock()
	p := c.next
	first := p == nil
	if first {
		p = &pass{done: make(chan struct{})}
		c.next = p
	}
	c.mu.Unlock()
	if first {
		c.take(p)
	}
	<-p.done
	return p
}

func (c *census) take(p *pass) {
	c.turn <- struct{}{}
	c.mu.Lock()
	c.next = nil // from here on it is too late to join
	c.mu.Unlock()
	p.all, p.err = scan()
	p.sessions = make(map[int][]stat)
	for _, s := range p.all {
		p.sessions[s.session] = append(p.sessions[s.session], s)
	}
	if c.told != nil && p.err == nil {
		c.told(p)
	}
	close(p.done)
	<-c.turn
}

// scan reads everybody's stat. A process that ends meanwhile is left out.
func scan() ([]stat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]stat, 0, len(names))
	var buf [1024]byte
	// Backwards: the kernel lists by number, and who forks and exits all the time has
	// the newest. A look has to come before the next one.
	for _, name := range slices.Backward(names) {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		s, ok, err := tryStat(int(dir.Fd()), name, buf[:])
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, s)
		}
	}
	return all, nil
}
