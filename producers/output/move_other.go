//go:build unix && !linux

package output

import "golang.org/x/sys/unix"

func (p *pump) move(pipe int, limit int64) (int64, error) { return p.copyMove(pipe, limit) }

func widen(store *Store, _ int) { store.wide.Add(1) }

func pending(pipe int) int {
	n, err := unix.IoctlGetInt(pipe, fionread)
	if err != nil {
		return 0
	}
	return n
}

// fionread is FIONREAD of the BSDs, which the unix package does not name for all.
const fionread = 0x4004667f

func punch(int, int64, int64) error { return unix.ENOTSUP }
