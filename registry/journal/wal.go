package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// The layout of a write-ahead log: a header, then frames of a header and a page each.
// Checksums go on from frame to frame, salts are those of the log's header.
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682 // the last bit says in which order checksums take bytes
	leastPage   = 512
	usualPage   = 4096
	mostPage    = 64 << 10
)

// walk is what a look at the frames of a log finds.
type walk struct {
	// head is the log's header.
	head [walHeader]byte
	// frames is the length of the chain that holds, total what the file has room for,
	// gone how many behind the chain may have been of it.
	frames, total, gone int
	// lost says why something that was written is not in the chain; empty if it all is.
	lost string
}

// same reports whether two looks have seen the same end.
func (w walk) same(other walk) bool { return w.head == other.head && w.frames == other.frames }

// wholeLog refuses a log of which a part can't be read that was written. SQLite takes the
// frames before the first bad one and drops the rest without a word, which is right
// only for the end of a process in the middle of a write: then nothing follows.
func wholeLog(path string) error {
	var before walk
	for i := 0; ; i++ {
		w, err := walkLog(path + walSuffix)
		if err != nil {
			return err
		}
		if w.lost == "" {
			return nil
		}
		// Somebody may be writing it.
		if i > 0 && w.same(before) {
			return &DamageError{Path: path, Reason: "its log is damaged: " + w.lost + ", so that what was told would be undone", Log: true}
		}
		if i == inspectTries {
			return nil
		}
		before = w
	}
}

// walkLog walks the frames of a log; one that is not there is empty.
func walkLog(path string) (w walk, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil || info.Size() <= walHeader {
		return w, err
	}
	r := io.NewSectionReader(f, 0, info.Size())
	if _, err := io.ReadFull(r, w.head[:]); err != nil {
		return w, cutShort(err)
	}
	var s sum
	page := int(binary.BigEndian.Uint32(w.head[8:]))
	magic := binary.BigEndian.Uint32(w.head[:])
	s.add(magic&1 == 1, w.head[:24])
	if magic&^1 != walMagic || page < leastPage || page > mostPage || page&(page-1) != 0 || !s.is(w.head[24:]) {
		written, err := anything(r)
		if err == nil && written {
			// Who is cut off while it begins the log anew has moved all of the old one before.
			var moved bool
			if moved, err = movedLog(f, strings.TrimSuffix(path, walSuffix)); moved {
				return w, err
			}
		}
		if written {
			w.total = int(info.Size()) / usualPage
			w.gone = w.total
			w.lost = "its head can't be read"
		}
		return w, err
	}
	w.total = int(info.Size()-walHeader) / (frameHeader + page)
	c := chain{walk: &w, page: page, big: magic&1 == 1, salts: w.head[16:24]}
	err = c.follow(bufio.NewReaderSize(r, 256<<10), s)
	return w, err
}

// anything reports whether a file has more than zeros.
func anything(r io.Reader) (bool, error) {
	block := make([]byte, 64<<10)
	for {
		n, err := r.Read(block)
		if len(bytes.Trim(block[:n], "\x00")) > 0 {
			return true, nil
		}
		if err != nil {
			return false, cutShort(err)
		}
	}
}

// cutShort makes the end of a file no error: it may be cut by its writer meanwhile.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// chain follows the frames of a log.
type chain struct {
	*walk
	page  int
	big   bool
	salts []byte
	// behind counts the frames behind the first bad one.
	behind int
}

// follow goes along the frames while each follows from the one before. Behind the
// first that does not it looks for a commit that can't have been written unless the
// frames before it were.
func (c *chain) follow(r io.Reader, s sum) error {
	frame, before := make([]byte, frameHeader+c.page), make([]byte, frameHeader+c.page)
	for {
		if _, err := io.ReadFull(r, frame); err != nil {
			return cutShort(err)
		}
		next := s
		if !c.ours(frame) || binary.BigEndian.Uint32(frame) == 0 || !next.frame(c.big, frame) {
			break
		}
		s = next
		c.frames++
	}
	for first := true; ; first = false {
		frame, before = before, frame
		if _, err := io.ReadFull(r, frame); err != nil {
			return cutShort(err)
		}
		c.behind++
		front := s // of the frame before, as it should be
		s = sumOf(before[16:])
		if !c.ours(frame) {
			continue
		}
		c.gone = 1 + c.behind
		ended := commits(frame) || first && c.ours(before) && commits(before)
		if c.lost == "" && ended && c.after(front, before, frame) {
			c.lost = fmt.Sprintf("from frame %d of %d on it can't be read", c.frames+1, c.total)
		}
	}
}

// after reports whether a frame was written behind another: it follows from what stands
// there, or would stand there. Where that one is not of this log any more, the salts
// have to do. What a transaction that was taken back has left behind the end
// follows from nothing.
func (c *chain) after(front sum, before, frame []byte) bool {
	says := sumOf(before[16:])
	front.frame(c.big, before)
	return !c.ours(before) || says.frame(c.big, frame) || front.frame(c.big, frame)
}

// ours reports whether a frame was written since the log was last begun anew.
func (c *chain) ours(frame []byte) bool { return bytes.Equal(frame[8:16], c.salts) }

// commits reports whether a frame is the last of a transaction.
func commits(frame []byte) bool { return binary.BigEndian.Uint32(frame[4:]) != 0 }

// sum is a checksum of a log.
type sum [2]uint32

// sumOf reads one.
func sumOf(b []byte) sum {
	return sum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// frame adds a frame, and reports whether that is the sum that it carries.
func (s *sum) frame(big bool, frame []byte) bool {
	s.add(big, frame[:8])
	s.add(big, frame[frameHeader:])
	return s.is(frame[16:])
}

func (s *sum) is(b []byte) bool { return *s == sumOf(b) }

func (s *sum) add(big bool, b []byte) {
	x, y := s[0], s[1]
	for ; len(b) >= 8; b = b[8:] {
		if big {
			x += binary.BigEndian.Uint32(b) + y
			y += binary.BigEndian.Uint32(b[4:]) + x
		} else {
			x += binary.LittleEndian.Uint32(b) + y
			y += binary.LittleEndian.Uint32(b[4:]) + x
		}
	}
	s[0], s[1] = x, y
}
