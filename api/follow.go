package api

import (
	"net/http"
	"time"
)

// A task that prints without a pause is not followed byte by byte: after a piece of
// hasty bytes the next one is awaited until it has grown to a batch, or for a lull.
const (
	hasty = 64 << 10
	batch = 1 << 20
	lull  = 2 * time.Millisecond
)

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
		if err := p.goOn(c, r, direct.sendTo); err != nil {
			return err
		}
		return direct.end()
	}
	c.WriteHeader(http.StatusOK)
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
	expiry := time.NewTimer(time.Until(c.principal.ExpiresAt))
	defer expiry.Stop()
	for {
		first, next, ended := p.log.Bounds()
		if first > p.begin {
			return http.ErrAbortHandler // fell behind: never a silent hole
		}
		size := next - p.begin
		if err := send(next); err != nil {
			return err
		}
		if ended {
			return nil
		}
		if !p.await(r, expiry, size >= hasty) {
			return http.ErrAbortHandler
		}
	}
}

// await blocks until there is more, and reports whether following goes on.
func (p *logPiece) await(r *http.Request, expiry *time.Timer, haste bool) bool {
	if haste {
		pause := time.NewTimer(lull)
		defer pause.Stop()
		select {
		case <-p.log.Grown(p.begin + batch):
			return true
		case <-pause.C:
		case <-r.Context().Done():
			return false
		case <-expiry.C:
			return false
		}
	}
	select {
	case <-p.log.Grown(p.begin):
		return true
	case <-r.Context().Done():
		return false
	case <-expiry.C:
		return false
	}
}
