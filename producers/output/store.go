package output

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// DefaultMaxBytes bounds a log when [Config.MaxBytes] is zero.
const DefaultMaxBytes = 64 << 20

// Config is what a [Store] needs.
type Config struct {
	// Dir holds the files. It is made, if missing, and kept at mode 0700. A link or
	// a directory of somebody else is refused.
	Dir string
	// MaxBytes bounds the kept bytes of each log; zero means [DefaultMaxBytes].
	MaxBytes int64
	// Logger hears of lost output; nil discards.
	Logger *slog.Logger
}

// Store makes logs in one directory. It is safe for concurrent use.
type Store struct {
	dir    *os.File
	max    int64
	logger *slog.Logger
	// prefix tells the files of successive stores in one directory apart.
	prefix string
	seq    atomic.Uint64
	// wide counts pipes that were enlarged: what one user may have is bounded by
	// the kernel, and past that bound every new pipe is tiny.
	wide   atomic.Int32
	pieces sync.Pool
	spares spares
	// closed is what waiting gets when there is nothing to wait for.
	closed chan struct{}
}

// NewStore opens the directory, making it if needed.
func NewStore(config Config) (*Store, error) {
	if config.MaxBytes < 0 {
		return nil, fmt.Errorf("output bound %d is negative", config.MaxBytes)
	}
	dir, err := openDir(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("output directory: %w", err)
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	store := &Store{
		dir:    dir,
		max:    config.MaxBytes,
		logger: config.Logger,
		prefix: hex.EncodeToString(random[:]) + "-",
		pieces: sync.Pool{New: func() any { return new(piece) }},
		closed: make(chan struct{}),
	}
	if store.max == 0 {
		store.max = DefaultMaxBytes
	}
	if store.logger == nil {
		store.logger = slog.New(slog.DiscardHandler)
	}
	close(store.closed)
	store.spares.init(store)
	return store, nil
}

// Close gives the directory back. Logs that are still read fail from then on. It
// is called once, when no log is written any more.
func (s *Store) Close() error {
	for _, rest := range s.spares.close() {
		_ = rest.file.Close() // may be closed already
		_ = s.remove(s.name(rest.seq, logSuffix))
	}
	return s.dir.Close()
}

// openDir opens a directory that is really ours and makes it private.
func openDir(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := claim(dir); err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

func claim(dir *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return &fs.PathError{Op: "fstat", Path: dir.Name(), Err: err}
	}
	if int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (uid %d)", dir.Name(), stat.Uid)
	}
	if stat.Mode&0o777 != 0o700 {
		return dir.Chmod(0o700)
	}
	return nil
}

// borrow takes a buffer; it goes back into pieces.
func (s *Store) borrow() *piece {
	got, _ := s.pieces.Get().(*piece) // the pool makes nothing else
	return got
}

// name gives the file of the n-th log, or of what is kept aside of it.
func (s *Store) name(n uint64, suffix string) string {
	var buf [40]byte
	name := append(buf[:0], s.prefix...)
	name = strconv.AppendUint(name, n, 10)
	return string(append(name, suffix...))
}

// open opens a file of the store relative to its directory; a link is refused.
func (s *Store) open(name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(s.dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

// remove unlinks a file of the store; one that is not there is no error.
func (s *Store) remove(name string) error {
	err := unix.Unlinkat(int(s.dir.Fd()), name, 0)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	return nil
}
