package proc

import (
	"strings"

	"golang.org/x/sys/unix"
)

// overMemory reads memory.events, which counts the kills in the group and below it.
func (c *cgroup) overMemory() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq == 0 {
		return false
	}
	fd, err := c.groups.openAt(groupName(c.seq)+"/memory.events", unix.O_RDONLY)
	if err != nil {
		return false
	}
	var buf [1024]byte
	n, _ := unix.Read(fd, buf[:])
	_ = unix.Close(fd)
	for line := range strings.Lines(string(buf[:max(n, 0)])) {
		if kills, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(kills) != "0"
		}
	}
	return false
}
