package journal

import (
	"errors"
	"os"
	"syscall"
)

// reserveBytes is the space that is kept for hard times.
const reserveBytes = 1 << 20

// reserve is a file that holds space.
type reserve struct {
	// path is the file, log the write-ahead log that gets the space.
	path, log string
	held      bool
}

// take makes the file, unless it is there, if that many bytes are free.
func (r *reserve) take(free int64) error {
	if info, err := os.Lstat(r.path); err == nil && info.Mode().IsRegular() && info.Size() == reserveBytes {
		r.held = true
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = allocate(f, free)
	if err == nil {
		err = f.Truncate(reserveBytes)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.path))
	}
	r.held = true
	return nil
}

// release gives the space back, and takes most of it for the log at once: others
// are waiting for it too.
func (r *reserve) release() {
	r.held = false
	_ = os.Remove(r.path) // then the next write fails and says why
	claim(r.log, reserveBytes*3/4)
}
