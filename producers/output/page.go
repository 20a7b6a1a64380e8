package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Page is a piece of the log as valid UTF-8. Offset is where it really begins,
// NextOffset where the next one does; neither lies inside a character. The page
// with the last byte that was kept ends behind those that were lost after it.
type Page struct {
	Text               string
	Offset, NextOffset int64
	// Dropped counts the bytes of the log that are gone, in total. Lost ones behind
	// the last kept byte are passed over as dropped ones are; once the log has ended
	// the page with that byte ends behind them.
	Dropped int64
	// End says that the log has ended and NextOffset is its end.
	End bool
}

// piece is a buffer of the store's, used between a read and a write.
type piece [64 << 10]byte

// Page gives at most limit raw bytes from offset on, as text. It never waits. An
// offset inside a character moves back to its start, one below the first kept
// byte up to it, one behind the last byte is [ErrBeyond]. A character that is cut
// at the end of what has arrived is left for later, and shows as U+FFFD once the
// log has ended. A page smaller than one character still makes progress. What is
// missing of the file of a log that has ended is gone as if it was dropped.
func (l *Log) Page(offset, limit int64) (Page, error) {
	page, err := l.page(offset, limit)
	if errors.Is(err, ErrDamaged) && l.check() {
		return l.page(offset, limit)
	}
	return page, err
}

func (l *Log) page(offset, limit int64) (Page, error) {
	l.keep.RLock()
	defer l.keep.RUnlock()
	ended := l.hasEnded()
	first, end, written := l.bounds()
	if offset > written {
		return Page{}, fmt.Errorf("%w: %d is behind its end, %d", ErrBeyond, offset, written)
	}
	page := Page{Offset: max(offset, first), Dropped: l.gone.Load()}
	if page.Offset >= end {
		page.Offset = written // behind what was lost, if anything was
	}
	page.NextOffset = page.Offset
	if first < end && page.Offset <= end {
		span := span{log: l, first: first, end: end, final: ended || end < written}
		piece := l.store.borrow()
		defer l.store.pieces.Put(piece)
		err := l.reading(func(file *os.File) error { return page.fill(file, piece, span, max(limit, 1)) })
		if err != nil {
			return Page{}, err
		}
	}
	if ended && page.NextOffset == end {
		page.NextOffset = written // a read of the last kept byte is the last one
	}
	page.End = ended && page.NextOffset == written
	return page, nil
}

// span is what a log held when a page was begun; final says that nothing follows
// it.
type span struct {
	log        *Log
	first, end int64
	final      bool
}

// fill reads the page. It may be called again after an error.
func (p *Page) fill(file io.ReaderAt, piece *piece, span span, limit int64) error {
	if back := min(longest-1, p.Offset-span.first); back > 0 {
		window, err := span.log.readSpan(file, piece[:back+longest], p.Offset-back, span.end)
		if err != nil {
			return err
		}
		p.Offset -= int64(inside(window, int(back), span.final))
	}

	var text strings.Builder
	end := min(p.Offset+limit, span.end)
	text.Grow(int(end - p.Offset))
	next := p.Offset
	for next < end {
		got, err := span.log.readSpan(file, piece[:], next, end)
		if err != nil {
			return err
		}
		last := next+int64(len(got)) == end
		next += int64(appendText(&text, got, last && span.final && end == span.end))
		if last {
			break
		}
	}
	if next == p.Offset && next < span.end {
		// The limit is shorter than the first character: give that one whole.
		got, err := span.log.readSpan(file, piece[:longest], next, span.end)
		if err != nil {
			return err
		}
		size, cut := unit(got)
		if !cut || span.final {
			appendText(&text, got[:size], true)
			next += int64(size)
		}
	}
	p.Text, p.NextOffset = text.String(), next
	return nil
}

// readSpan fills p from offset on, but not beyond end. The caller holds keep, or is
// the pump.
func (l *Log) readSpan(file io.ReaderAt, p []byte, offset, end int64) ([]byte, error) {
	p = p[:min(int64(len(p)), end-offset)]
	n, err := l.place.readAt(file, p, offset)
	if n == len(p) {
		return p, nil
	}
	return nil, damaged(err)
}

// reading calls read with the log's file: the writer's while it lives, a fresh
// one afterwards. read may be called twice, if the log ends meanwhile.
func (l *Log) reading(read func(*os.File) error) error {
	l.mu.Lock()
	file := l.file
	l.mu.Unlock()
	if file != nil {
		if err := read(file); !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	file, err := l.reopen()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return read(file)
}

// reopen opens the file for reading; a log that ended without a byte has none.
func (l *Log) reopen() (*os.File, error) {
	name := l.fileName(logSuffix)
	if name == "" {
		return os.Open(os.DevNull)
	}
	file, err := l.store.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, damaged(err)
	}
	return file, nil
}

// damaged names a file that is gone or too short for what it is.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) {
		return fmt.Errorf("%w: %s", ErrDamaged, err.Error()) // io.EOF would read as a regular end
	}
	return err
}
