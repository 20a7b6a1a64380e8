package output

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
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
	// TotalBytes bounds the kept bytes of all logs together; zero means
	// [DefaultTotalBytes]. Beyond it [Store.Room] refuses, but what is being written
	// goes on.
	TotalBytes int64
	// Full, if not nil, is called when TotalBytes is reached, and again as the total
	// rises further, from a goroutine of its own. It may remove logs.
	Full func()
	// Logger hears of lost output; nil discards.
	Logger *slog.Logger
}

// Store makes logs in one directory. It is safe for concurrent use.
type Store struct {
	// dir is where the files are; another one takes its place when it vanished.
	dir    *os.File
	dirMu  sync.RWMutex
	path   string
	max    int64
	budget budget
	logger *slog.Logger
	// era tells the files of this store from those of others in the directory.
	era  *era
	eras eras
	seq  atomic.Uint64
	// wide counts pipes that were enlarged: what one user may have is bounded by
	// the kernel, and past that bound every new pipe is tiny.
	wide   atomic.Int32
	pieces sync.Pool
	spares spares
	// punch gives a piece of a file back to the disk; keeps is set once the file
	// system refused that.
	punch func(file int, offset, length int64) error
	keeps atomic.Bool
	// closed is what waiting gets when there is nothing to wait for.
	closed chan struct{}
}

// NewStore opens the directory, making it if needed.
func NewStore(config Config) (*Store, error) {
	if config.MaxBytes < 0 || config.TotalBytes < 0 {
		return nil, fmt.Errorf("output bound %d is negative", min(config.MaxBytes, config.TotalBytes))
	}
	dir, err := openDir(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("output directory: %w", err)
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	store := &Store{
		dir:    dir,
		path:   config.Dir,
		max:    config.MaxBytes,
		punch:  punch,
		logger: config.Logger,
		era:    &era{prefix: hex.EncodeToString(random[:]) + "-"},
		pieces: sync.Pool{New: func() any { return new(piece) }},
		closed: make(chan struct{}),
	}
	if store.max == 0 {
		store.max = DefaultMaxBytes
	}
	store.budget.bound, store.budget.full = config.TotalBytes, config.Full
	if store.budget.bound == 0 {
		store.budget.bound = DefaultTotalBytes
	}
	if store.logger == nil {
		store.logger = slog.New(slog.DiscardHandler)
	}
	close(store.closed)
	store.openSlots()
	store.spares.init(store)
	return store, nil
}

// Close gives the directory back. Logs that are still read fail from then on. It
// is called once, when no log is written any more.
func (s *Store) Close() error {
	for _, rest := range s.spares.close() {
		s.drop(rest)
	}
	s.budget.calls.Wait()
	if s.era.slots.idle() {
		_ = s.remove(s.era.prefix + slotsSuffix)
	}
	s.era.slots.close()
	s.closeEras()
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

// in calls do with the directory.
func (s *Store) in(do func(dir int) error) error {
	s.dirMu.RLock()
	defer s.dirMu.RUnlock()
	return do(int(s.dir.Fd()))
}

// restore makes the directory again after it vanished, with all that was in it.
func (s *Store) restore() error {
	if again, err := s.restoreDir(); err != nil || !again {
		return err
	}
	s.openSlots()
	return nil
}

func (s *Store) restoreDir() (again bool, err error) {
	s.dirMu.Lock()
	defer s.dirMu.Unlock()
	if !vanished(s.dir) {
		return false, nil // somebody else was quicker
	}
	dir, err := openDir(s.path)
	if err != nil {
		return false, err
	}
	_ = s.dir.Close()
	s.dir = dir
	s.logger.Error("the output directory had vanished; what it kept is gone")
	return true, nil
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

// name gives the file of the n-th log of this store.
func (s *Store) name(n uint64, suffix string) string { return s.era.name(n, suffix) }

// open opens a file of the store relative to its directory; a link is refused.
func (s *Store) open(name string, flags int) (file *os.File, err error) {
	err = s.in(func(dir int) error {
		for {
			fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return &fs.PathError{Op: "open", Path: name, Err: err}
			}
			file = os.NewFile(uintptr(fd), name)
			return nil
		}
	})
	return file, err
}

// create makes a file of the store, and the directory again if it vanished.
func (s *Store) create(name string) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
	file, err := s.open(name, flags)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.restore(); err != nil {
			return nil, err
		}
		return s.open(name, flags)
	}
	return file, err
}

// remove unlinks a file of the store; one that is not there is no error.
func (s *Store) remove(name string) error {
	err := s.in(func(dir int) error { return unix.Unlinkat(dir, name, 0) })
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	return nil
}
