//go:build !linux

package output

import (
	"errors"
	"syscall"
)

// SendTo is for systems that can move bytes from a file into a socket while they are
// held against being dropped; elsewhere it is [errors.ErrUnsupported].
func (r *Reader) SendTo(syscall.RawConn, int64, int64) (int64, error) {
	return 0, errors.ErrUnsupported
}
