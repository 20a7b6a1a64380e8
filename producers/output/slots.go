package output

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const slotsSuffix = ".slots"

const (
	slotBytes = 128
	// firstSlots and moreSlots are how many are reserved on the disk at once, so that a
	// full one does not keep a log from noting where its bytes lie.
	firstSlots = 64
	moreSlots  = 512
	slotWords  = 9
)

// slot says what can't be seen from a log's file: whose it is when it had served an
// empty log before, and where the bytes are as soon as positions are not offsets, or
// something is lost. One that was written is there whenever this process ends: it is
// written by one call within one page of the file.
type slot struct {
	seq, use uint64
	// plain says that the file is the log from its first byte to its last.
	plain bool
	counters
}

// counters are what is known of a log's bytes; see [Log] and place.
type counters struct{ written, gone, first, base, ring, size int64 }

// slots are the slots of one era, in a file. Most logs never need one.
type slots struct {
	mu   sync.Mutex
	file *os.File // nil where it could not be made: then nothing can be noted
	// size counts the slots that are reserved, used those that were ever taken.
	size, used int32
	free       []int32
}

var errNoSlots = errors.New("the file for what logs note is not there")

// write notes a slot in at, which is taken if it is 0.
func (s *slots) write(at *int32, what *slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return errNoSlots
	}
	take := *at == 0
	if take {
		if err := s.takeLocked(at); err != nil {
			return err
		}
	}
	err := s.putLocked(*at, what)
	if err != nil && take {
		s.free = append(s.free, *at)
		*at = 0
	}
	return err
}

func (s *slots) takeLocked(at *int32) error {
	if n := len(s.free); n > 0 {
		*at, s.free = s.free[n-1], s.free[:n-1]
		return nil
	}
	if s.used == s.size {
		if err := s.reserveLocked(moreSlots); err != nil {
			return err
		}
	}
	s.used++
	*at = s.used
	return nil
}

// reserveLocked makes room for more, on the disk.
func (s *slots) reserveLocked(more int32) error {
	if err := writeAll(s.file, make([]byte, more*slotBytes), int64(s.size)*slotBytes); err != nil {
		return err
	}
	s.size += more
	return nil
}

func (s *slots) putLocked(at int32, what *slot) error {
	var buf [slotBytes]byte
	what.encode(&buf)
	return writeAll(s.file, buf[:], int64(at-1)*slotBytes)
}

// giveBack takes the slot of a log whose file is gone.
func (s *slots) giveBack(at int32) {
	if at == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, at)
}

// idle says that no slot is taken.
func (s *slots) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.used) == len(s.free)
}

func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

func writeAll(file *os.File, data []byte, at int64) error {
	for len(data) > 0 {
		n, err := unix.Pwrite(int(file.Fd()), data, at)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		default:
			data, at = data[n:], at+int64(n)
		}
	}
	return nil
}

// load reads what was noted, by file; of who comes after, the slots that are taken are
// left alone.
func (s *slots) load(file *os.File) (map[uint64]slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	n := len(data)
	s.free, s.used, s.size = nil, int32(n/slotBytes), int32(n/slotBytes)
	all := make(map[uint64]slot)
	for at := range s.used {
		var got slot
		if got.decode(data[at*slotBytes : (at+1)*slotBytes]) {
			all[got.seq] = got
		} else {
			s.free = append(s.free, at+1)
		}
	}
	return all, nil
}

func (s *slot) encode(buf *[slotBytes]byte) {
	plain := uint64(0)
	if s.plain {
		plain = 1
	}
	words := [slotWords]uint64{
		s.seq, s.use, plain, uint64(s.written), uint64(s.gone), uint64(s.first),
		uint64(s.base), uint64(s.ring), uint64(s.size),
	}
	for i, word := range words {
		binary.LittleEndian.PutUint64(buf[8*i:], word)
	}
	binary.LittleEndian.PutUint32(buf[8*slotWords:], crc32.ChecksumIEEE(buf[:8*slotWords]))
}

// decode reports whether there is one.
func (s *slot) decode(buf []byte) bool {
	var words [slotWords]uint64
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(buf[8*i:])
	}
	if words[0] == 0 || crc32.ChecksumIEEE(buf[:8*slotWords]) != binary.LittleEndian.Uint32(buf[8*slotWords:]) {
		return false
	}
	*s = slot{seq: words[0], use: words[1], plain: words[2] == 1, counters: counters{
		written: int64(words[3]), gone: int64(words[4]), first: int64(words[5]),
		base: int64(words[6]), ring: int64(words[7]), size: int64(words[8]),
	}}
	return true
}
