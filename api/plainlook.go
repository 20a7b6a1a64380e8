package api

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"time"

	"afoot/api/plain"
	"afoot/registry"
)

// maxLine is where a line that has no end is cut.
const maxLine = registry.MaxPageBytes

// lookPlain is a look at whole lines, as a terminal would show them. Offsets stay
// those of the raw bytes.
func (a *API) lookPlain(c *call, r *http.Request, how *reading) error {
	if r.Method == http.MethodHead {
		how.wait.asked = false
	}
	ctx, release := how.wait.during(c, r)
	defer release()
	l := &lines{call: c, r: r.WithContext(ctx), how: how, until: time.Now().Add(how.wait.bound)}
	var err error
	if l.log, err = a.service.OpenLog(r.Context(), c.caller, c.task(), how.stream); err == nil {
		defer func() { _ = l.log.Close() }()
	} else if registry.CodeOf(err) != registry.CodeConflict {
		return err
	}
	read, err := l.next()
	switch {
	case c.principal.Ended():
		return errExpired()
	case err != nil:
		return err
	}
	return c.send(r, read, how)
}

// lines looks at a task line by line.
type lines struct {
	*call
	r     *http.Request
	how   *reading
	until time.Time
	// log is nil for work that has final output only.
	log registry.RawLog
}

// next gives the whole lines that there are; it waits for one if it was asked to.
func (l *lines) next() (registry.Read, error) {
	for over := !l.how.wait.asked; ; {
		var seen int64
		if l.log != nil {
			_, seen, _ = l.log.Bounds()
		}
		// This look has the state and the refusals, and finds where a character begins.
		read, err := l.look(l.how.offset, 0)
		if err != nil {
			return read, err
		}
		if err := l.fill(&read); err != nil {
			return read, err
		}
		if read.NextOffset > read.Offset || read.EOF || over {
			return read, nil
		}
		if over, err = l.await(read.Offset, seen); err != nil {
			return read, err
		}
	}
}

// await blocks until there may be what was not there before: the end, behind seen, of the
// line that begins at begin, or the end of the task. Over says that waiting any longer is
// no use.
func (l *lines) await(begin, seen int64) (over bool, err error) {
	for {
		left := time.Until(l.until)
		if left <= 0 {
			return true, nil
		}
		read, err := l.look(seen, left)
		if err != nil || read.Snapshot.Status.Terminal() {
			return false, err
		}
		if read.NextOffset == read.Offset { // it was released, by the time or by the daemon's end
			return true, nil
		}
		var broken bool
		if seen, broken = l.broken(begin, seen); broken {
			return false, nil
		}
		select {
		case <-time.After(lull):
		case <-l.r.Context().Done():
			return false, l.r.Context().Err()
		}
	}
}

// broken reports whether the line from begin on may have an end between seen and next,
// which is what there is now.
func (l *lines) broken(begin, seen int64) (next int64, yes bool) {
	first, next, ended := l.log.Bounds()
	if ended || first > begin || next-begin >= maxLine {
		return next, true
	}
	buf := make([]byte, min(next-seen, 64<<10))
	for at := seen; at < next; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), next-at)]
		if n, _ := l.log.ReadAt(buf, at); n < len(buf) || bytes.IndexByte(buf, '\n') >= 0 {
			return next, true
		}
	}
	return next, false
}

func (l *lines) look(offset int64, wait time.Duration) (registry.Read, error) {
	limit := int64(registry.MaxPageBytes)
	if l.log != nil {
		limit = 1 // the bytes come from the log
	}
	return l.api.service.Look(l.r.Context(), l.caller, l.task(), offset,
		registry.LookOptions{Stream: l.how.stream, Wait: wait, LimitBytes: limit})
}

// fill puts the whole lines from read.Offset on into read.
func (l *lines) fill(read *registry.Read) error {
	kept := stretch{text: read.Text, first: read.Offset, next: read.NextOffset, ended: read.EOF}
	if l.log != nil {
		kept = l.kept(read)
	}
	raw, err := kept.lines(read.Offset, cmp.Or(l.how.limit, registry.MaxPageBytes))
	for err != nil && l.log != nil {
		before := kept.first
		if kept = l.kept(read); kept.first == before {
			return registry.Wrap(registry.CodeInternal, err, "The output can't be read.")
		}
		raw, err = kept.lines(read.Offset, cmp.Or(l.how.limit, registry.MaxPageBytes))
	}
	all := kept.ended && read.Offset+int64(len(raw)) == kept.next
	text, consumed := plain.View(raw, all)
	if consumed == 0 && len(raw) == maxLine {
		text, consumed = plain.View(raw, true)
	}
	read.Skipped = max(read.Offset-l.how.offset, 0)
	read.Text, read.NextOffset = text, read.Offset+int64(consumed)
	read.EOF = all && read.Snapshot.Status.Terminal() && read.NextOffset == kept.next
	return nil
}

// kept is what the log has now, as far as the snapshot of read counts it. A read
// that begins below it is moved up.
func (l *lines) kept(read *registry.Read) stretch {
	s := stretch{log: l.log}
	s.first, s.next, s.ended = l.log.Bounds()
	if !s.ended && l.how.stream != registry.StreamStderr {
		s.next = max(min(s.next, read.Snapshot.OutputBytes), s.first)
	}
	read.Offset, read.Dropped = max(read.Offset, s.first), s.first
	s.next = max(s.next, read.Offset)
	return s
}

// stretch is a part of an output from which lines are taken.
type stretch struct {
	// log has the bytes; without one they are text, from first on.
	log         io.ReaderAt
	text        string
	first, next int64
	ended       bool
}

// lines gives about limit bytes from begin on, and more only if they hold no end of
// a line.
func (s stretch) lines(begin, limit int64) ([]byte, error) {
	raw, err := s.bytes(begin, min(begin+limit, s.next))
	if err != nil || bytes.IndexByte(raw, '\n') >= 0 || begin+int64(len(raw)) == s.next || len(raw) >= maxLine {
		return raw, err
	}
	if raw, err = s.bytes(begin, min(begin+maxLine, s.next)); err != nil {
		return nil, err
	}
	if i := bytes.IndexByte(raw, '\n'); i >= 0 {
		raw = raw[:i+1]
	}
	return raw, nil
}

// bytes reads a piece that has arrived.
func (s stretch) bytes(begin, end int64) ([]byte, error) {
	if s.log == nil {
		return []byte(s.text[begin-s.first : end-s.first]), nil
	}
	raw := make([]byte, end-begin)
	n, err := s.log.ReadAt(raw, begin)
	if n == len(raw) {
		return raw, nil
	}
	return nil, cmp.Or(err, io.ErrUnexpectedEOF)
}
