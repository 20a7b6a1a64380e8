//go:build unix && !linux

package output

import (
	"errors"
	"syscall"
)

// SendTo is not to be had here.
func (r *Reader) SendTo(syscall.RawConn, int64, int64) (int64, error) {
	return 0, errors.ErrUnsupported
}
