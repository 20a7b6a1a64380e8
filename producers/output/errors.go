package output

import "errors"

// The refusals of reads. Any other error comes from the file system.
var (
	// ErrBeyond means an offset behind the last byte.
	ErrBeyond = errors.New("offset is beyond the output")
	// ErrDropped means an offset below the first kept byte, on a raw read.
	ErrDropped = errors.New("bytes at this offset were dropped")
	// ErrDamaged means that the file is gone or shorter than what was kept in it.
	ErrDamaged = errors.New("the stored output is gone or damaged")
)
