package proc

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mark is what the processes of a host without control groups have in their
// environment, to be known when the host has died.
type mark string

func newMark() mark {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	return mark(hex.EncodeToString(id[:]))
}

// in gives an environment with the mark, and without that of a host around this one.
func (m mark) in(env []string) []string {
	if m == "" {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, remainsMark) })
	return append(env, remainsMark+string(m))
}

// Remains names what this host leaves if its program ends without closing it.
func (h *Host) Remains() Remains {
	r := Remains{Boot: bootID(), Since: h.since, Mark: string(h.mark), User: uint32(os.Geteuid())}
	r.Session, _ = unix.Getsid(0)
	if h.runAs != nil {
		r.User = h.runAs.UID
	}
	if h.nets.lineage != nil {
		r.Stamp = h.nets.lineage.stamps.common()
	}
	if c := h.nets.cgroups; c != nil {
		r.Group = c.dir()
		var stat unix.Stat_t
		if unix.Fstat(int(c.lock.Fd()), &stat) == nil {
			r.GroupInode = stat.Ino
		}
	}
	return r
}
