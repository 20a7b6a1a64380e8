package auth

import (
	"sync"
	"time"
)

// Ended reports whether p's token or its key has ended. Like [Authority.Authenticate]
// it picks up changes of local files. A principal that wasn't made by an [Authority]
// has ended.
func (p Principal) Ended() bool {
	if p.key == nil {
		return true
	}
	now := p.by.now()
	p.by.poll(now)
	_, live := p.at(now)
	return !live
}

// Watch calls end once, on a goroutine of its own, when p's token or its key has
// ended, unless stop was called before. While there are such watches, local files are
// looked at every second.
func (p Principal) Watch(end func()) (stop func()) {
	if p.key == nil {
		go end()
		return func() {}
	}
	p.by.vigils.add(p.by)
	v := &vigil{principal: p, end: end}
	k := p.key
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.vigils == nil {
		k.vigils = make(map[*vigil]struct{})
	}
	k.vigils[v] = struct{}{}
	left, _ := v.left()
	v.timer = time.AfterFunc(left, v.look)
	return func() { v.leave() }
}

// vigil waits for the end of one principal. Its timer is guarded by the key's mutex, so
// that no look puts off one that a change of the key has asked for.
type vigil struct {
	principal Principal
	end       func()
	timer     *time.Timer
}

// look is what the timer does: a vigil that is not at its end goes on.
func (v *vigil) look() {
	if v.over() && v.leave() {
		v.end()
	}
}

func (v *vigil) over() bool {
	k := v.principal.key
	k.mu.Lock()
	defer k.mu.Unlock()
	left, live := v.left()
	if _, waits := k.vigils[v]; live && waits {
		v.timer.Reset(left)
	}
	return !live
}

// left is how long the principal is still good, as far as it is known.
func (v *vigil) left() (left time.Duration, live bool) {
	now := v.principal.by.now()
	p, live := v.principal.at(now)
	if !live {
		return 0, false
	}
	return p.ExpiresAt.Sub(now), true
}

// leave reports whether this was what ended the vigil.
func (v *vigil) leave() bool {
	k := v.principal.key
	k.mu.Lock()
	_, waited := k.vigils[v]
	delete(k.vigils, v)
	v.timer.Stop()
	k.mu.Unlock()
	if waited {
		v.principal.by.vigils.remove()
	}
	return waited
}

// vigils counts the vigils of an authority. While there are some, a timer looks for
// changes of local files, as calls do otherwise. The zero value has none.
type vigils struct {
	mu    sync.Mutex
	count int
	timer *time.Timer
}

func (w *vigils) add(a *Authority) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	switch {
	case w.count > 1:
	case w.timer == nil:
		w.timer = time.AfterFunc(pollEvery, func() { w.look(a) })
	default:
		w.timer.Reset(pollEvery)
	}
}

func (w *vigils) remove() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count--; w.count == 0 {
		w.timer.Stop()
	}
}

func (w *vigils) look(a *Authority) {
	a.poll(a.now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count > 0 {
		w.timer.Reset(pollEvery)
	}
}
