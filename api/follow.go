package api

import (
	"net/http"
	"time"
)

// lull is how long a follower rests between two pieces of output that came without
// a pause: what a task prints at full speed leaves in large pieces, and whoever
// is woken for each small one would cost more than the bytes.
const lull = 2 * time.Millisecond

// follow sends what is there and what comes, until the output ends.
func (p *logPiece) follow(c *call, r *http.Request, rng byteRange, ranged bool) error {
	if ranged {
		if rng.last >= 0 {
			return invalid("A log that is followed takes an open range, such as bytes=%d-.", rng.first)
		}
		begin, _, ok := rng.within(p.next)
		if p.begin = begin; !ok && begin != p.next || begin < p.first {
			return p.unsatisfiable(c)
		}
	}
	p.headers(c)
	if r.Method == http.MethodHead {
		c.WriteHeader(http.StatusOK)
		return nil
	}
	if direct := p.direct(c, r); direct != nil {
		direct.chunked = true
		direct.announceChunks()
		c.WriteHeader(http.StatusOK)
		c.opened()
		if err := p.goOn(c, r, direct.sendTo); err != nil {
			return err
		}
		return direct.end()
	}
	c.WriteHeader(http.StatusOK)
	c.opened()
	return p.goOn(c, r, func(end int64) error {
		if err := p.copyTo(c, end); err != nil {
			return err
		}
		if err := c.FlushError(); err != nil {
			return http.ErrAbortHandler
		}
		return nil
	})
}

// goOn calls send with each new end of the output, until the last.
func (p *logPiece) goOn(c *call, r *http.Request, send func(end int64) error) error {
	left := c.api.left()
	expired := make(chan struct{})
	unwatch := c.principal.Watch(func() { close(expired) })
	defer unwatch()
	rest := time.NewTimer(lull)
	defer rest.Stop()
	for {
		first, next, ended := p.log.Bounds()
		if first > p.begin {
			return http.ErrAbortHandler // fell behind: never a silent hole
		}
		if c.principal.Ended() {
			return http.ErrAbortHandler
		}
		end := min(next, p.begin+maxChunk)
		if err := send(end); err != nil {
			return err
		}
		if end < next {
			continue
		}
		if ended {
			return nil
		}
		sent := time.Now()
		select {
		case <-p.log.Grown(p.begin):
		case <-r.Context().Done():
			return http.ErrAbortHandler
		case <-left:
			return http.ErrAbortHandler
		case <-expired:
			return http.ErrAbortHandler
		}
		_, _, ended = p.log.Bounds()
		if hurry := lull - time.Since(sent); hurry > 0 && !ended {
			rest.Reset(hurry)
			select {
			case <-rest.C:
			case <-r.Context().Done():
				return http.ErrAbortHandler
			}
		}
	}
}
