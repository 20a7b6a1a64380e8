package output

import (
	"io"
	"iter"
)

// place says where the bytes of a log lie in its file: in a ring, so that what is
// new takes the room of what was dropped. No file system has to give anything
// back for that, the file never gets longer than the log's bound, and pages that
// the system has are used again.
//
// Offsets never change meaning: byte base lies at the file's beginning, or did.
type place struct {
	base, ring int64
	// size is how long the file is.
	size int64
	// file counts how often another file took the place of one that vanished.
	file int
}

// ring is how long a log's file may get.
func (s *Store) ring() int64 {
	return (s.max + blockBytes - 1) &^ (blockBytes - 1)
}

// at gives the position of a byte.
func (p *place) at(offset int64) int64 { return (offset - p.base) % p.ring }

// straight says that positions are offsets for all bytes up to end.
func (p *place) straight(end int64) bool { return p.base == 0 && end <= p.ring }

// pieces gives the spans of the file that hold the bytes from offset on, in their
// order.
func (p *place) pieces(offset, length int64) iter.Seq2[int64, int64] {
	return func(yield func(at, length int64) bool) {
		for length > 0 {
			at := p.at(offset)
			n := min(length, p.ring-at)
			if !yield(at, n) {
				return
			}
			offset, length = offset+n, length-n
		}
	}
}

// readAt fills buf with the bytes from offset on, which are kept.
func (p *place) readAt(file io.ReaderAt, buf []byte, offset int64) (n int, err error) {
	for at, length := range p.pieces(offset, int64(len(buf))) {
		got, err := file.ReadAt(buf[n:n+int(length)], at)
		if n += got; int64(got) < length {
			return n, err
		}
	}
	return n, nil
}
