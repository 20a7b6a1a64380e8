package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// touches knows which groups somebody has written to, or made something in: what was
// done to such a group can't be seen nor undone. All others are as good as new once
// they are empty. It is told by inotify, which notes a write before it returns.
type touches struct {
	mu sync.Mutex
	// fd is -1 where the system tells nothing: then every group counts as touched.
	fd int
	// names has the watched groups, by watch; clean are those that nobody touched.
	names map[int32]uint64
	clean map[uint64]int32
}

func (t *touches) init() {
	t.names, t.clean = make(map[int32]uint64), make(map[uint64]int32)
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		fd = -1
	}
	t.fd = fd
}

func (t *touches) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fd >= 0 {
		_ = unix.Close(t.fd)
	}
	t.fd = -1
	clear(t.names)
	clear(t.clean)
}

// watch begins to watch over a group that nobody knows yet.
func (t *touches) watch(dir string, seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fd < 0 {
		return
	}
	wd, err := unix.InotifyAddWatch(t.fd, dir, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_ATTRIB|unix.IN_ONLYDIR)
	if err != nil {
		return
	}
	t.names[int32(wd)], t.clean[seq] = seq, int32(wd)
}

// untouched says that nobody has done anything to a group but live in it.
func (t *touches) untouched(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readLocked()
	_, clean := t.clean[seq]
	return clean
}

// forget ends the watch over a group.
func (t *touches) forget(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wd, found := t.clean[seq]; found {
		t.dropLocked(wd)
	}
}

func (t *touches) dropLocked(wd int32) {
	delete(t.clean, t.names[wd])
	delete(t.names, wd)
	_, _ = unix.InotifyRmWatch(t.fd, uint32(wd))
}

// readLocked takes what there is to hear. If some of it was lost, nobody is clean.
func (t *touches) readLocked() {
	var buf [4096]byte
	for t.fd >= 0 {
		n, err := unix.Read(t.fd, buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			name := b[unix.SizeofInotifyEvent:][:binary.NativeEndian.Uint32(b[12:])]
			b = b[unix.SizeofInotifyEvent+len(name):]
			switch _, known := t.names[wd]; {
			case mask&unix.IN_Q_OVERFLOW != 0:
				for wd := range t.names {
					t.dropLocked(wd)
				}
			case mask&unix.IN_MODIFY != 0 && string(bytes.TrimRight(name, "\x00")) == eventsFile:
				// The kernel's own word that somebody came or went. Nobody can write there.
			case known:
				t.dropLocked(wd)
			}
		}
	}
}

// empty says that nobody lives in a group.
func (c *cgroups) empty(seq uint64) bool {
	fd, err := c.openAt(filepath.Join(groupName(seq), eventsFile), unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return !populated(fd)
}
