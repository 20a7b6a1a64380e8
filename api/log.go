package api

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"afoot/registry"
)

// getLog answers GET and HEAD of /tasks/{id}/log.
func (a *API) getLog(c *call, r *http.Request) error {
	q := queryOf(r, "follow")
	follow := q.flag("follow")
	if q.err != nil {
		return q.err
	}
	log, err := a.service.OpenLog(r.Context(), c.caller, c.task(), "")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	first, next, ended := log.Bounds()
	piece := logPiece{log: log, begin: first, end: next, first: first, next: next, ended: ended}

	rng, ranged := parseRange(r.Header.Get("Range"))
	// There is no validator, so an If-Range never matches.
	ranged = ranged && r.Header.Get("If-Range") == ""
	if follow && !ended {
		return piece.follow(c, r, rng, ranged)
	}
	return piece.serve(c, r, rng, ranged)
}

// logPiece is a piece of raw output, in output offsets, and what was kept when it
// was asked for.
type logPiece struct {
	log         registry.RawLog
	begin, end  int64
	first, next int64
	ended       bool
}

// serve answers with the piece, which ends.
func (p *logPiece) serve(c *call, r *http.Request, rng byteRange, ranged bool) error {
	status := http.StatusOK
	if ranged {
		var ok bool
		if p.begin, p.end, ok = rng.within(p.next); !ok || p.begin < p.first {
			return p.unsatisfiable(c)
		}
		status = http.StatusPartialContent
		c.Header().Set("Content-Range", "bytes "+strconv.FormatInt(p.begin, 10)+"-"+strconv.FormatInt(p.end-1, 10)+"/"+strconv.FormatInt(p.next, 10))
	}
	p.headers(c)
	c.Header().Set("Content-Length", strconv.FormatInt(p.end-p.begin, 10))
	c.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	if file, ok := p.log.(interface{ File() *os.File }); ok && p.ended {
		return p.sendFile(c, file.File())
	}
	return p.copyTo(c, p.end)
}

func (p *logPiece) headers(c *call) {
	h := c.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("Accept-Ranges", "bytes")
	h.Set("Afoot-Offset", strconv.FormatInt(p.begin, 10))
	h.Set("Afoot-Dropped-Bytes", strconv.FormatInt(p.first, 10))
}

// unsatisfiable refuses a range and names what there is.
func (p *logPiece) unsatisfiable(c *call) error {
	c.Header().Set("Accept-Ranges", "bytes")
	c.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(p.next, 10))
	c.Header().Set("Afoot-Offset", strconv.FormatInt(p.first, 10))
	return registry.Errorf(CodeRangeNotSatisfiable,
		"The range must begin at a kept byte: the first one kept is %d, and the output has %d bytes so far.", p.first, p.next)
}

// sendFile lets the system move an ended log, which never changes again.
func (p *logPiece) sendFile(c *call, file *os.File) error {
	if _, err := file.Seek(p.begin, io.SeekStart); err != nil {
		return err
	}
	for at := p.begin; at < p.end; {
		n, err := c.ReadFrom(io.LimitReader(file, min(p.end-at, 4*writeChunk)))
		if err != nil || n == 0 {
			return http.ErrAbortHandler
		}
		at += n
	}
	return nil
}

// copyTo sends bytes up to end. Bytes that were dropped meanwhile read as zeros, so
// each piece is checked after it was read; a caller that is too late is cut off.
func (p *logPiece) copyTo(c *call, end int64) error {
	buf := make([]byte, min(end-p.begin, 32<<10))
	for p.begin < end {
		n, err := p.log.ReadAt(buf[:min(int64(len(buf)), end-p.begin)], p.begin)
		if first, _, _ := p.log.Bounds(); n == 0 || err != nil && err != io.EOF || first > p.begin { //nolint:errorlint // ReaderAt's own end
			return http.ErrAbortHandler
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return http.ErrAbortHandler
		}
		p.begin += int64(n)
	}
	return nil
}

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
	c.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	expiry := time.NewTimer(time.Until(c.principal.ExpiresAt))
	defer expiry.Stop()
	for {
		first, next, ended := p.log.Bounds()
		if first > p.begin {
			return http.ErrAbortHandler // fell behind: never a silent hole
		}
		if err := p.copyTo(c, next); err != nil {
			return err
		}
		if ended {
			return nil
		}
		if err := c.FlushError(); err != nil {
			return http.ErrAbortHandler
		}
		select {
		case <-p.log.Grown(p.begin):
		case <-r.Context().Done():
			return http.ErrAbortHandler
		case <-expiry.C:
			return http.ErrAbortHandler
		}
	}
}
