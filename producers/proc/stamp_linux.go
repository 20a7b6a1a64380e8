package proc

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// limitOfStamps is RLIMIT_RTTIME: how many microseconds a process of a real-time
	// class may run without a pause. Values near a stamp's are 146000 years.
	limitOfStamps = 15
	// A stamp is a bit, the host's random part, and the tree's number.
	stampBit     = 1 << 62
	stampNumbers = 20
)

// stamps are what the processes of each tree bear: the soft value of a resource limit
// that has no effect. Fork and exec hand it on, and an environment, a session, a
// descriptor or a parent that is given up takes nothing of it. Only who changes the
// limit itself gets rid of it.
type stamps struct {
	// host is the part that all stamps of a host have in common.
	host uint64
	// before is the program's own limit.
	before unix.Rlimit
	// able says that it allows stamps.
	able bool

	// forking is held while the program itself bears a stamp, for its child to be born
	// with it.
	forking sync.Mutex
}

// init prepares stamps; host is 0 for a new one.
func (s *stamps) init(host uint64) {
	for s.host = host; s.host == 0; {
		var random [8]byte
		_, _ = rand.Read(random[:]) // it never fails
		s.host = binary.NativeEndian.Uint64(random[:]) >> (64 - 62 + stampNumbers)
	}
	err := unix.Prlimit(0, limitOfStamps, nil, &s.before)
	s.able = err == nil && s.before.Max >= 2*stampBit-1
}

// of gives the stamp of a number.
func (s *stamps) of(number uint64) uint64 {
	return stampBit | s.host<<stampNumbers | number&(1<<stampNumbers-1)
}

// common is what all stamps of this host begin with, 0 if there are none.
func (s *stamps) common() uint64 {
	if !s.able {
		return 0
	}
	return s.of(0) >> stampNumbers
}

// own tells that a stamp is of this host.
func (s *stamps) own(stamp uint64) bool { return stamp>>stampNumbers == s.of(0)>>stampNumbers }

// fork has a child born with a stamp.
func (s *stamps) fork(stamp uint64, fork func() (int, error)) (int, error) {
	if !s.able {
		return fork()
	}
	s.forking.Lock()
	defer s.forking.Unlock()
	if unix.Prlimit(0, limitOfStamps, &unix.Rlimit{Cur: stamp, Max: s.before.Max}, nil) == nil {
		defer func() { _ = unix.Prlimit(0, limitOfStamps, &s.before, nil) }()
	}
	return fork()
}

// stampOf reads the stamp of a process; false if it has none.
func stampOf(pid int) (stamp uint64, ok bool) {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, limitOfStamps, nil, &limit)
	if errors.Is(err, unix.EPERM) { // of another user; but everybody may read it
		limit.Cur, err = readStamp(pid)
	}
	return limit.Cur, err == nil && limit.Cur&^(stampBit-1) == stampBit
}

func readStamp(pid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "Max realtime timeout")
	soft, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	return strconv.ParseUint(soft, 10, 64) // an error for unlimited
}
