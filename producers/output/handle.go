package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// handle is what a later [Store] on the same directory needs to give a log back. Of a
// log that lives it holds its name alone: the rest is in the file, or noted in its slot.
type handle struct {
	// File is empty for a log that ended without a byte.
	File string `json:"file,omitempty"`
	// Use counts the empty logs that the file had served before.
	Use   uint32 `json:"use,omitempty"`
	Aside bool   `json:"aside,omitempty"`
	Ring  int64  `json:"ring,omitempty"`
	Ended bool   `json:"ended,omitempty"`

	Written int64 `json:"written,omitempty"`
	Gone    int64 `json:"gone,omitempty"`
	First   int64 `json:"first,omitempty"`
	Base    int64 `json:"base,omitempty"`
	// Size is left out if it is Written.
	Size *int64 `json:"size,omitempty"`
	Loss string `json:"loss,omitempty"`
}

// Handle gives what [Store.Reopen] needs, now and in a later process. That of a log that
// lives is good as long as its file is there; that of one that has ended also beyond what
// was noted for crashes. It does not block on the disk.
func (l *Log) Handle() (json.RawMessage, error) {
	l.keep.RLock()
	defer l.keep.RUnlock()
	l.mu.Lock()
	h := handle{Use: l.use, Aside: l.aside, Ended: l.ended, Loss: l.lossLocked()}
	seq := l.seq
	l.named = l.named || seq != 0
	l.mu.Unlock()
	if seq == 0 {
		return json.Marshal(handle{Ended: true})
	}
	h.File, h.Ring = l.era.name(seq, ""), l.place.ring
	if h.Ended {
		c := l.counters()
		h.Written, h.Gone, h.First, h.Base = c.written, c.gone, c.first, c.base
		if c.size != c.written {
			h.Size = &c.size
		}
	}
	return json.Marshal(h)
}

var errHandle = errors.New("it names no log")

// Reopen gives a log of an earlier store in this directory back, as one that has ended.
// Nothing of it is held open. Of a log that lived when its process died everything is
// there that was in its file, and nothing that was not its. What is missing counts as
// gone. An error means that there is no telling what is its.
func (s *Store) Reopen(data json.RawMessage) (*Log, error) {
	var h handle
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("reopen a log: %w", err)
	}
	l, err := s.reopen(&h)
	if err != nil {
		s.note(h.File) // it may be read after another start
		return nil, fmt.Errorf("reopen the log %q: %w", h.File, err)
	}
	return l, nil
}

func (s *Store) reopen(h *handle) (*Log, error) {
	l := &Log{store: s, era: s.era, ended: true, place: place{ring: s.ring()}}
	if h.File == "" {
		return l, nil
	}
	if err := l.identify(s, h); err != nil {
		return nil, err
	}
	if h.Ended {
		c := counters{written: h.Written, gone: h.Gone, first: h.First, base: h.Base, ring: h.Ring, size: h.Written}
		if h.Size != nil {
			c.size = *h.Size
		}
		if !c.valid() {
			return nil, errHandle
		}
		l.restore(c)
	} else if err := l.recover(h); err != nil {
		return nil, err
	}
	if l.seq != 0 {
		s.note(h.File)
		written, gone := l.Size()
		s.budget.kept.Add(written - gone) // nobody is asked to make room before all is there
	}
	return l, nil
}

// identify takes era and number from a handle's name.
func (l *Log) identify(s *Store, h *handle) (err error) {
	prefix, number, ok := strings.Cut(h.File, "-")
	seq, parseErr := strconv.ParseUint(number, 10, 64)
	if !ok || parseErr != nil || seq == 0 || strings.ContainsAny(prefix, "/.\x00") || h.Ring <= 0 {
		return errHandle
	}
	if l.era, err = s.of(prefix + "-"); err != nil {
		return err
	}
	l.seq, l.use, l.named = seq, h.Use, true
	if loss := h.Loss; loss != "" {
		l.loss = &loss
	}
	l.aside, l.shown = h.Aside, h.Aside
	return nil
}

// restore sets what is known of the bytes.
func (l *Log) restore(c counters) {
	l.written.Store(c.written)
	l.gone.Store(c.gone)
	l.first.Store(c.first)
	l.place.base, l.place.ring, l.place.size = c.base, c.ring, c.size
}

// valid tells counters that a log can have.
func (c *counters) valid() bool {
	end := c.written - (c.gone - c.first)
	return c.ring > 0 && c.first >= 0 && c.size >= 0 && c.gone >= c.first && c.first <= end && end <= c.written &&
		c.base <= c.first && end-c.first <= c.ring
}

// recover finds out what a log had when its process died.
func (l *Log) recover(h *handle) error {
	size, sealed, err := l.look()
	if err != nil {
		return err
	}
	noted, ok := l.era.noted[l.seq]
	switch {
	case size < 0 && !ok:
		l.seq = 0 // it was given back, or somebody removed it
		return nil
	case ok && noted.use != uint64(h.Use), !ok && h.Use > 0:
		if !ok || noted.use < uint64(h.Use) {
			return errors.New("whose bytes are in its file is not noted")
		}
		l.seq = 0 // the file served others since, so the log had ended without a byte
		return nil
	case sealed:
		l.lost(errUnknown)
		all := max(noted.written, size)
		l.restore(counters{written: all, gone: all, first: all, base: all, ring: h.Ring, size: 0})
		return nil
	case !ok || noted.plain:
		size = max(size, 0)
		l.restore(counters{written: size, ring: h.Ring, size: size})
		return nil
	}
	c := noted.counters
	if !c.valid() {
		return errHandle
	}
	l.place = place{base: c.base, ring: c.ring}
	// Bytes that were moved to the end of the file, and not counted yet.
	end := c.written - (c.gone - c.first)
	if end == c.written && l.place.at(end) == c.size && size > c.size {
		c.written += size - c.size
		c.size = size
	}
	l.restore(c)
	return nil
}

var errUnknown = errors.New("where its bytes lie could not be noted before a crash")

// look gives the size of a log's file, -1 if there is none.
func (l *Log) look() (size int64, sealed bool, err error) {
	var stat unix.Stat_t
	name := l.era.name(l.seq, logSuffix)
	err = l.store.in(func(dir int) error { return unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW) })
	switch {
	case errors.Is(err, unix.ENOENT), err == nil && stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return -1, false, nil
	case err != nil:
		return 0, false, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return stat.Size, stat.Mode&0o200 == 0, nil
}
