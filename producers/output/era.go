package output

import (
	"errors"
	"io/fs"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// era is what the logs of one [Store] have in common, also when they are read by a later
// one: the beginning of their names, and their slots.
type era struct {
	prefix string
	slots  slots
	// noted are the slots of an earlier era, until nothing of it is reopened any more.
	noted map[uint64]slot
}

// eras are the earlier ones of which logs were reopened.
type eras struct {
	mu     sync.Mutex
	byName map[string]*era
	// kept are the files that were reopened, as long as nobody has asked what else
	// there is.
	kept  map[string]struct{}
	swept bool
}

// name gives the file of the n-th log, or of what is kept aside of it.
func (e *era) name(n uint64, suffix string) string {
	var buf [40]byte
	name := append(buf[:0], e.prefix...)
	name = strconv.AppendUint(name, n, 10)
	return string(append(name, suffix...))
}

// openSlots makes the file for what this store's logs note, in place of one that
// vanished. Without one logs are kept, and what is noted is missing after a crash.
func (s *Store) openSlots() {
	file, err := s.open(s.era.prefix+slotsSuffix, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err == nil {
		held := &s.era.slots
		held.mu.Lock()
		defer held.mu.Unlock()
		if held.file != nil {
			_ = held.file.Close()
		}
		held.file, held.size = file, 0
		for err == nil && (held.size == 0 || held.size < held.used) {
			err = held.reserveLocked(firstSlots)
		}
		if err == nil {
			return
		}
	}
	s.logger.Warn("where the bytes of long logs lie can't be noted for after a crash", "error", err.Error())
}

// of gives the era of a name.
func (s *Store) of(prefix string) (*era, error) {
	if prefix == s.era.prefix {
		return s.era, nil
	}
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	if e := s.eras.byName[prefix]; e != nil {
		return e, nil
	}
	e := &era{prefix: prefix}
	file, err := s.open(prefix+slotsSuffix, unix.O_RDWR)
	switch {
	case err == nil:
		e.noted, err = e.slots.load(file)
		_ = file.Close()
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if s.eras.byName == nil {
		s.eras.byName = make(map[string]*era)
	}
	s.eras.byName[prefix] = e
	return e, nil
}

// note remembers that a file is somebody's.
func (s *Store) note(name string) {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	if s.eras.swept {
		return
	}
	if s.eras.kept == nil {
		s.eras.kept = make(map[string]struct{})
	}
	s.eras.kept[name] = struct{}{}
}

func (s *Store) closeEras() {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	for _, e := range s.eras.byName {
		e.slots.close()
	}
}
