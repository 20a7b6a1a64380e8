package api

import (
	"io"
	"net/http"
	"os"
	"strconv"

	"afoot/registry"
)

// getLog answers GET and HEAD of /tasks/{id}/log.
func (a *API) getLog(c *call, r *http.Request) error {
	q := queryOf(r, "follow", "stream")
	follow, stream := q.flag("follow"), q.stream()
	if q.err != nil {
		return q.err
	}
	log, err := a.service.OpenLog(r.Context(), c.caller, c.task(), stream)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	first, next, ended := log.Bounds()
	piece := logPiece{name: logName(c.target, stream), log: log, begin: first, end: next, first: first, next: next, ended: ended}

	rng, ranged := parseRange(r.Header.Get("Range"))
	// There is no validator, so an If-Range never matches.
	ranged = ranged && r.Header.Get("If-Range") == ""
	if follow && !ended {
		return piece.follow(c, r, rng, ranged)
	}
	piece.zip = !follow && wantsGzip(r.Header.Values("Accept-Encoding"))
	return piece.serve(c, r, rng, ranged)
}

// logName is what a browser calls the file that it saves.
func logName(id, stream string) string {
	if stream == registry.StreamStderr {
		return id + ".stderr.log"
	}
	return id + ".log"
}

// logPiece is a piece of raw output, in output offsets, and what was kept when it
// was asked for.
type logPiece struct {
	name        string
	log         registry.RawLog
	begin, end  int64
	first, next int64
	ended       bool
	// held, when not nil, has the bytes from begin to end.
	held []byte
	// zip: the whole of it may be compressed.
	zip bool
}

// holdTries bounds how often a piece that was dropped meanwhile is chosen anew.
const holdTries = 20

// hold takes a piece of a live log into memory, if it is little: a writer may drop
// it faster than it is sent. False means that it was too late, and that the piece is
// now what is kept.
func (p *logPiece) hold() bool {
	if p.ended || p.end-p.begin >= leastDirect {
		return true
	}
	held := make([]byte, p.end-p.begin)
	if p.read(held) == nil {
		p.held = held
		return true
	}
	p.first, p.next, p.ended = p.log.Bounds()
	p.begin, p.end = p.first, p.next
	return false
}

// serve answers with the piece, which ends.
func (p *logPiece) serve(c *call, r *http.Request, rng byteRange, ranged bool) error {
	status := http.StatusOK
	for again, tries := true, 0; again && tries < holdTries; tries++ {
		if ranged {
			var ok bool
			if p.begin, p.end, ok = rng.within(p.next); !ok || p.begin < p.first {
				return p.unsatisfiable(c)
			}
		}
		again = r.Method != http.MethodHead && !p.hold()
	}
	if ranged {
		status = http.StatusPartialContent
		c.Header().Set("Content-Range", "bytes "+strconv.FormatInt(p.begin, 10)+"-"+strconv.FormatInt(p.end-1, 10)+"/"+strconv.FormatInt(p.next, 10))
	}
	p.headers(c)
	if status == http.StatusOK && p.end-p.begin >= leastGzip && p.zip {
		return p.compress(c, r)
	}
	c.Header().Set("Content-Length", strconv.FormatInt(p.end-p.begin, 10))
	file := p.file()
	var direct *directSender
	if file == nil && p.end-p.begin >= leastDirect {
		direct = p.direct(c, r)
	}
	if direct != nil {
		c.Header().Set("Connection", "close") // the server does not see the bytes
	}
	c.WriteHeader(status)
	switch {
	case r.Method == http.MethodHead:
		return nil
	case direct != nil:
		return direct.sendTo(p.end)
	case file != nil:
		return p.sendFile(c, file)
	default:
		return p.copyTo(c, p.end)
	}
}

// file gives the file of an ended log whose offsets are the log's; nil if there is
// none.
func (p *logPiece) file() *os.File {
	if log, ok := p.log.(interface{ File() *os.File }); ok && p.ended {
		return log.File()
	}
	return nil
}

func (p *logPiece) headers(c *call) {
	h := c.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Disposition", `attachment; filename="`+p.name+`"`)
	h.Add("Vary", "Accept-Encoding")
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

// copyTo sends bytes up to end. A caller that is too late for them is cut off.
func (p *logPiece) copyTo(w io.Writer, end int64) error {
	if p.held != nil {
		if _, err := w.Write(p.held); err != nil {
			return http.ErrAbortHandler
		}
		return nil
	}
	buf := make([]byte, min(end-p.begin, 32<<10))
	for p.begin < end {
		piece := buf[:min(int64(len(buf)), end-p.begin)]
		if err := p.read(piece); err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return http.ErrAbortHandler
		}
		p.begin += int64(len(piece))
	}
	return nil
}

// read fills buf with what has arrived at the begin of the piece.
func (p *logPiece) read(buf []byte) error {
	n, err := p.log.ReadAt(buf, p.begin)
	if n < len(buf) || err != nil && err != io.EOF { //nolint:errorlint // ReaderAt's own end
		return http.ErrAbortHandler
	}
	return nil
}
