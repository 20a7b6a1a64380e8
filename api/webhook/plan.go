package webhook

import (
	"container/heap"
	"context"
	"time"
)

// plan is the heap of webhooks that have something to post. Guarded by Poster.mu.
type plan []*hook

// Len implements [heap.Interface].
func (d *plan) Len() int { return len(*d) }

// Less implements [heap.Interface].
func (d *plan) Less(i, j int) bool { return (*d)[i].at.Before((*d)[j].at) }

// Swap implements [heap.Interface].
func (d *plan) Swap(i, j int) {
	all := *d
	all[i], all[j] = all[j], all[i]
	all[i].place, all[j].place = i, j
}

// Push implements [heap.Interface].
func (d *plan) Push(x any) {
	h, _ := x.(*hook)
	h.place = len(*d)
	*d = append(*d, h)
}

// Pop implements [heap.Interface].
func (d *plan) Pop() any {
	old := *d
	h := old[len(old)-1]
	h.place = -1
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return h
}

// nextLocked gives what a webhook posts next, however late that is: of all that may be
// posted what is due first, and of those the oldest.
func (h *hook) nextLocked(budget int) (next *post) {
	if h.gone || h.flying != nil || h.joining != nil {
		return nil
	}
	for _, o := range h.posts {
		if !o.notice.held && o.affordable(budget) && (next == nil || o.due.Before(next.due)) {
			next = o
		}
	}
	return next
}

// planLocked puts a webhook where it belongs. It is called after each change to what it
// may post.
func (p *Poster) planLocked(h *hook) {
	next := h.nextLocked(p.limits.Budget)
	switch {
	case next == nil && h.place >= 0:
		heap.Remove(&p.due, h.place)
	case next == nil:
	case h.place >= 0:
		h.at = next.due
		heap.Fix(&p.due, h.place)
	default:
		h.at = next.due
		heap.Push(&p.due, h)
	}
	if next != nil {
		p.rouse()
	}
}

// replanLocked is planLocked for all that an owner has.
func (p *Poster) replanLocked(acc *account) {
	for _, h := range acc.hooks {
		p.planLocked(h)
	}
}

func (p *Poster) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// flight is a post under way, with a copy of all that it needs.
type flight struct {
	ctx     context.Context //nolint:containedctx // the flight is one request, and ends with it
	post    *post
	address string
	id      string
	body    []byte
}

// launch gives the posts that are to begin now.
func (p *Poster) launch(ctx context.Context) (flights []flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for p.flying < maxFlights && len(p.due) > 0 && !p.due[0].at.After(now) {
		h, _ := heap.Pop(&p.due).(*hook)
		session := h.row.Session
		o := h.nextLocked(p.limits.Budget)
		switch {
		case o == nil: // another webhook of the owner has taken the last of the budget
		case o.due.After(now):
			p.planLocked(h)
		case p.busy[session] >= maxFlightsPerSession:
			p.crowded[session] = append(p.crowded[session], h)
		default:
			flights = append(flights, p.beginLocked(ctx, o))
		}
	}
	return flights
}

func (p *Poster) beginLocked(ctx context.Context, o *post) flight {
	h := o.hook
	p.chargeLocked(o.notice)
	p.flying++
	p.busy[h.row.Session]++
	h.flying = o
	o.attempts++
	ctx, cancel := context.WithTimeout(ctx, p.limits.Timeout)
	o.cancel = cancel
	return flight{ctx: ctx, post: o, address: h.row.URL, id: o.notice.ID, body: o.notice.Body}
}

// rest is how long the loop may sleep if nobody wakes it.
func (p *Poster) rest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.due) == 0 || p.flying >= maxFlights {
		return time.Hour
	}
	return max(0, time.Until(p.due[0].at))
}
