package output

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// moved is a live log as it passes an exec.
type moved struct {
	Handle handle `json:"handle"`
	// FD is its file, open.
	FD     int   `json:"fd"`
	Slot   int32 `json:"slot,omitempty"`
	Bent   bool  `json:"bent,omitempty"`
	Sealed bool  `json:"sealed,omitempty"`
	Shown  bool  `json:"shown,omitempty"`
	// File is place's.
	File int   `json:"moves,omitempty"`
	Lent int64 `json:"lent,omitempty"`
}

// HandOver gives what [Store.Adopt] needs to go on with a log that has not ended, in
// another image of this process: its file stays open across an exec. No Drain may run
// until [Log.TakeBack].
func (l *Log) HandOver() (json.RawMessage, error) {
	l.keep.RLock()
	defer l.keep.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil, fs.ErrClosed
	}
	fd, err := Inherit(l.file, true)
	if err != nil {
		return nil, err
	}
	l.named = true
	c := l.counters()
	return json.Marshal(moved{
		Handle: handle{
			File: l.era.name(l.seq, ""), Use: l.use, Aside: l.aside, Loss: l.lossLocked(),
			Ring: c.ring, Written: c.written, Gone: c.gone, First: c.first, Base: c.base, Size: &c.size,
		},
		FD: fd, Slot: l.slot, Bent: l.bent, Sealed: l.sealed, Shown: l.shown, File: l.place.file,
		Lent: l.lent.Load(),
	})
}

// TakeBack undoes HandOver.
func (l *Log) TakeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = Inherit(l.file, false)
	}
}

// Adopt goes on with a log that was handed over before an exec.
func (s *Store) Adopt(data json.RawMessage) (*Log, error) {
	var m moved
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("adopt a log: %w", err)
	}
	l := &Log{store: s, slot: m.Slot, bent: m.Bent, sealed: m.Sealed}
	err := l.identify(s, &m.Handle)
	if err == nil {
		err = s.reopenSlots(l.era)
	}
	if err != nil {
		return nil, fmt.Errorf("adopt the log %q: %w", m.Handle.File, err)
	}
	h := &m.Handle
	l.restore(counters{written: h.Written, gone: h.Gone, first: h.First, base: h.Base, ring: h.Ring, size: *h.Size})
	l.place.file, l.shown = m.File, m.Shown
	l.lent.Store(m.Lent)
	l.file = os.NewFile(uintptr(m.FD), m.Handle.File)
	if _, err := Inherit(l.file, false); err != nil {
		return nil, fmt.Errorf("adopt the log %q: %w", m.Handle.File, err)
	}
	s.note(m.Handle.File)
	s.budget.kept.Add(h.Written - h.Gone)
	return l, nil
}

// reopenSlots makes an earlier era's slots writable.
func (s *Store) reopenSlots(e *era) error {
	if e == s.era {
		return nil
	}
	e.slots.mu.Lock()
	defer e.slots.mu.Unlock()
	if e.slots.file != nil {
		return nil
	}
	file, err := s.open(e.prefix+slotsSuffix, unix.O_RDWR)
	if err == nil {
		e.slots.file = file
	}
	return nil // without them nothing is noted
}

// Inherit says whether a file stays open across an exec, and gives its number there.
func Inherit(file *os.File, on bool) (fd int, err error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return -1, err
	}
	flags := unix.FD_CLOEXEC
	if on {
		flags = 0
	}
	// Not by File.Fd, which takes a file out of the runtime's poller.
	controlErr := conn.Control(func(number uintptr) {
		fd = int(number)
		_, err = unix.FcntlInt(number, unix.F_SETFD, flags)
	})
	if controlErr != nil {
		err = controlErr
	}
	return fd, os.NewSyscallError("fcntl", err)
}
