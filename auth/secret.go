package auth

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// minSecret is the least size of a secret, in bytes; HS256 wants no less.
	minSecret = 32
	// maxSecret bounds what is read as a secret file.
	maxSecret = 64 << 10
)

// LoadSecret reads a secret file. The secret is the file's bytes; if they are
// printable ASCII, white space around them doesn't count. It refuses a missing,
// empty or short file, a link, one that group or others may touch, and one that
// belongs to somebody else (root is nobody else); the error is a sentence with
// the file's name and what to do. A missing file is fs.ErrNotExist.
func LoadSecret(path string) ([]byte, error) {
	data, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	secret := trimText(data)
	switch {
	case len(secret) == 0:
		return nil, fmt.Errorf("the secret file %s is empty: remove it so that a new one is made, or write at least %d random bytes to it", path, minSecret)
	case len(secret) < minSecret:
		return nil, fmt.Errorf("the secret in %s has %d bytes and needs at least %d: write more random bytes to it", path, len(secret), minSecret)
	}
	return secret, nil
}

// EnsureSecret makes sure that path holds a good secret. A missing one is made,
// as 32 random bytes in hex, 0600 whatever the umask, in a directory that is
// made 0700 if it is missing too; of several that try at once, one makes it and
// all use it. Everything that [LoadSecret] refuses is refused and left alone.
func EnsureSecret(path string) (created bool, err error) {
	if _, err := LoadSecret(path); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer dir.close()
	err = dir.place(filepath.Base(path), newSecret(), false)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	_, loadErr := LoadSecret(path)
	return err == nil, loadErr
}

// NewSecret makes a secret.
func NewSecret() []byte { return newSecret() }

// readPrivate reads a small file that nobody else may touch.
func readPrivate(path string) ([]byte, error) {
	// Without O_NONBLOCK a planted FIFO would hold us up.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("the secret file %s is a link: name the file itself", path)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no secret file %s: write at least %d random bytes to it, mode 0600 (%w)", path, minSecret, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("the secret file %s can't be opened: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("the secret file %s can't be examined: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the secret file %s is not a regular file: name a regular file", path)
	}
	if uid, ok := stranger(info); ok {
		return nil, fmt.Errorf("the secret file %s belongs to another user (uid %d): use a file of your own", path, uid)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("the secret file %s may be read or written by others (mode %04o): run chmod 600 %s", path, perm, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("the secret file %s can't be read: %w", path, err)
	}
	if len(data) > maxSecret {
		return nil, fmt.Errorf("the secret file %s is larger than %d bytes: name a secret file", path, maxSecret)
	}
	return data, nil
}

// newSecret makes the text of a new secret file.
func newSecret() []byte {
	raw := make([]byte, minSecret)
	_, _ = rand.Read(raw) // It never fails; it would crash the program instead.
	return append(hex.AppendEncode(nil, raw), '\n')
}

// trimText drops white space around text and leaves binary data alone.
func trimText(data []byte) []byte {
	for _, b := range data {
		if (b < ' ' || b > '~') && b != '\n' && b != '\r' && b != '\t' {
			return data
		}
	}
	return bytes.TrimSpace(data)
}
