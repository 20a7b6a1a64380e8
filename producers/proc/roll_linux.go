package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A roll is shared memory of rows of two words: first who, 0 in an empty row, then
// since when. The first row holds rollMagic and how many rows were ever used.
const (
	rollRow   = 16
	rollRows  = 1 << 18
	rollMagic = 0x6c6c6f7261666f01

	// Of the first word the low half is the number, then come a bit and a width.
	rowLeads   = 1 << 32
	rowWidth   = 48
	widestRow  = 1<<16 - 1
	rowNumbers = 1<<32 - 1
)

// roll lists, for a watchdog in another process, who is known to be of this host: all
// leaders that were not reaped, and members as they are learned. What is written there
// outlives this process at any instant. Nothing reads it as long as this process lives,
// and a row is valid from the store of its first word on.
type roll struct {
	file *os.File // nil where the system has no such memory: then nothing is listed
	rows []uint64

	mu   sync.Mutex
	used uint64
	free []uint64
}

// entries are the rows of one tree. They belong to whoever has roll.mu.
type entries struct {
	leader  uint64 // 0: none
	members map[Member]uint64
	closed  bool
}

// open makes an empty roll, or goes on with one.
func (r *roll) open(file *os.File) error {
	if file == nil {
		fd, err := unix.MemfdCreate("roll", unix.MFD_CLOEXEC)
		if err != nil {
			return os.NewSyscallError("memfd_create", err)
		}
		file = os.NewFile(uintptr(fd), "roll")
		// Only what is used takes memory.
		if err := file.Truncate(rollRow * rollRows); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	data, err := unix.Mmap(int(file.Fd()), 0, rollRow*rollRows, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errors.Join(os.NewSyscallError("mmap", err), file.Close())
	}
	r.file = file
	r.rows = unsafe.Slice((*uint64)(unsafe.Pointer(&data[0])), 2*rollRows) //nolint:gosec // a page begins on a word
	r.used = max(1, r.rows[1])
	for row := uint64(1); row < r.used; row++ {
		if r.rows[2*row] == 0 {
			r.free = append(r.free, row)
		}
	}
	atomic.StoreUint64(&r.rows[1], r.used)
	atomic.StoreUint64(&r.rows[0], rollMagic)
	return nil
}

func (r *roll) close() {
	if r.file == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	data := unsafe.Slice((*byte)(unsafe.Pointer(&r.rows[0])), rollRow*rollRows) //nolint:gosec // as it was mapped
	_ = unix.Munmap(data)
	_ = r.file.Close()
	r.file, r.rows = nil, nil
}

// lead enters a leader that was started between two moments, in clock ticks.
func (r *roll) lead(e *entries, pid int, from, to uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.closed {
		e.leader = r.enterLocked(uint64(pid)|rowLeads|min(to-from, widestRow)<<rowWidth, from)
	}
}

// learn enters who is alive of a tree, and strikes who was. Once its leader was reaped
// that one's number proves nothing, as soon as others are known.
func (r *roll) learn(e *entries, members []Member, reaped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil || e.closed || len(members) == 0 && len(e.members) == 0 {
		return
	}
	now := make(map[Member]uint64, len(members))
	for _, member := range members {
		member.group, member.exiting = 0, false
		row, ok := e.members[member]
		if !ok {
			row = r.enterLocked(uint64(member.PID), member.start)
		}
		now[member] = row
		delete(e.members, member)
	}
	for _, row := range e.members {
		r.strikeLocked(row)
	}
	e.members = now
	if reaped && len(now) > 0 {
		r.strikeLocked(e.leader)
		e.leader = 0
	}
}

// forget strikes a tree of which nobody is left.
func (r *roll) forget(e *entries) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strikeLocked(e.leader)
	for _, row := range e.members {
		r.strikeLocked(row)
	}
	*e = entries{closed: true}
}

// enterLocked gives the row, 0 if there is none any more.
func (r *roll) enterLocked(who, since uint64) (row uint64) {
	switch n := len(r.free); {
	case n > 0:
		row, r.free = r.free[n-1], r.free[:n-1]
	case r.rows == nil || r.used == rollRows:
		return 0
	default:
		row = r.used
		r.used++
		atomic.StoreUint64(&r.rows[1], r.used)
	}
	atomic.StoreUint64(&r.rows[2*row+1], since)
	atomic.StoreUint64(&r.rows[2*row], who)
	return row
}

func (r *roll) strikeLocked(row uint64) {
	if row == 0 || r.rows == nil {
		return
	}
	atomic.StoreUint64(&r.rows[2*row], 0)
	r.free = append(r.free, row)
}

// Roll is the memory in which the host lists who is known to be its, for [ReadRoll] in
// another process; nil where the system has no such memory. It stays the host's, and is
// the same after an exec.
func (h *Host) Roll() *os.File { return h.roll.file }

// ReadRoll reads the list of a host that is dead, for [EndRemains].
func ReadRoll(file *os.File) ([]Kin, error) {
	var head [rollRow]byte
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("read the roll: %w", err)
	}
	if binary.NativeEndian.Uint64(head[:]) != rollMagic {
		return nil, errors.New("the roll is none")
	}
	used := min(binary.NativeEndian.Uint64(head[8:]), rollRows)
	rows, err := io.ReadAll(io.NewSectionReader(file, rollRow, int64(rollRow*max(used, 1)-rollRow)))
	if err != nil {
		return nil, fmt.Errorf("read the roll: %w", err)
	}
	var list []Kin
	for ; len(rows) >= rollRow; rows = rows[rollRow:] {
		if who := binary.NativeEndian.Uint64(rows); who != 0 {
			list = append(list, kinOf(who, binary.NativeEndian.Uint64(rows[8:])))
		}
	}
	return list, nil
}

// kinOf reads a row. When exactly a leader was started is asked now: it was not looked
// at when it was. If it is gone the earliest moment is as good.
func kinOf(who, since uint64) Kin {
	k := Kin{PID: int(who & rowNumbers), Start: since, Leader: who&rowLeads != 0}
	if !k.Leader {
		return k
	}
	if s, ok := statOf(k.PID); ok && s.start >= since && s.start <= since+who>>rowWidth {
		k.Start = s.start
	}
	return k
}
