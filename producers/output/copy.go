package output

import (
	"errors"

	"golang.org/x/sys/unix"
)

// copyMove is a move through memory, where the kernel can't do it alone. It
// counts what it could not write by itself and then gives EINTR, so that the pump
// goes on.
func (p *pump) copyMove(pipe int, limit int64) (int64, error) {
	piece := p.log.store.borrow()
	defer p.log.store.pieces.Put(piece)
	n, err := unix.Read(pipe, piece[:min(limit, int64(len(piece)))])
	if err != nil || n == 0 {
		return 0, err
	}
	rest := piece[:n]
	for len(rest) > 0 {
		size, err := p.room(int64(len(rest)))
		n := 0
		if err == nil {
			n, err = unix.Pwrite(int(p.file.Fd()), rest[:size], p.next())
		}
		switch {
		case err == nil:
			p.moved(pipe, int64(n))
			rest = rest[n:]
		case errors.Is(err, unix.EINTR):
		default:
			p.log.lost(err)
			if !noSpace(err) || !p.shed() {
				p.lose(int64(len(rest)))
				return 0, unix.EINTR
			}
		}
	}
	return 0, unix.EINTR
}
