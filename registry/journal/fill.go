package journal

import (
	"crypto/rand"
	"io"
	"os"
)

// fill writes that many bytes which no file system can make smaller.
func fill(f *os.File, size int64) error {
	_, err := io.CopyN(f, rand.Reader, size)
	return err
}
