package proc

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// outside is what a tree has beside its control group: who moved to another one. Of
// those are known the leader, until it was reaped, its session, and who was seen to
// descend from the leader while that lived.
type outside struct {
	// known are those of the last look, guarded by cgroup.mu.
	known []Member
	// met says that there ever was one.
	met bool
}

// outsiders gives who is alive outside of a group of which the members are known, and
// remembers them.
func (c *cgroup) outsiders(p *pass, members []Member) (found []Member) {
	add := func(m Member) {
		same := func(other Member) bool { return other.PID == m.PID && other.start == m.start }
		if !slices.ContainsFunc(members, same) && !slices.ContainsFunc(found, same) {
			found = append(found, m)
		}
	}
	for _, m := range c.own(p.sessions[c.sid]) {
		add(m)
	}
	if !c.reaped.Load() {
		for _, s := range p.below(c.sid) {
			add(s.member())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.outside.known {
		if s, ok := p.alive(m.PID); ok && s.start == m.start {
			add(s.member())
		}
	}
	c.outside.known = found
	c.outside.met = c.outside.met || len(found) > 0
	return found
}

// deserted reports whether nobody of the tree lives outside of its group. Before the
// leader was reaped its session can't be asked for, so that if ever somebody was seen
// outside only looks can tell.
func (c *cgroup) deserted() bool {
	if !c.reaped.Load() {
		leader, ok := statOf(c.sid)
		c.mu.Lock()
		defer c.mu.Unlock()
		return ok && leader.dead && !c.outside.met
	}
	c.mu.Lock()
	known := c.outside.known
	c.mu.Unlock()
	var buf [1024]byte
	for _, m := range known {
		s, ok, lack := tryStat(unix.AT_FDCWD, "/proc/"+strconv.Itoa(m.PID), buf[:])
		if lack != nil || ok && s.start == m.start && !s.dead {
			return false
		}
	}
	return c.group.empty()
}
