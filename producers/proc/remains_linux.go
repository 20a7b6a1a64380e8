package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// remainsMark begins the entry that a host without control groups puts into the
// environment of its processes. Its value is the host's own. It does not begin with
// AFOOT_: those are for programs to read, and this one is for nobody.
const remainsMark = "_AFOOT_DAEMON="

// quietLooks is how many looks in a row have to find nobody before a list or a mark is
// believed to be worked off.
const quietLooks = 3

// Kin is one process that is known to be of a host.
type Kin struct {
	PID int
	// Start is in clock ticks since the machine began.
	Start uint64
	// Leader says that the host had not reaped it when it died, so that until then nobody
	// else had its number.
	Leader bool
}

// EndRemains kills every process that a dead host left, and returns when nobody is
// found any more or ctx ends. Died is when that was, by [Ticks]. It does not touch what
// is not proven to be the host's: a process in its control groups; one of the list, with
// its start; one with a stamp, if its start fits, or with the mark, if its user does too; whoever descends from them or is
// in a session that one of them made or leads.
func EndRemains(ctx context.Context, r Remains, list []Kin, died uint64) (ended int, err error) {
	if r.Boot != bootID() {
		return 0, nil // all of them ended with the machine
	}
	e := &ending{remains: r, died: died, self: os.Getpid(), listed: make(map[int]Kin, len(list)), known: make(map[int]uint64), ours: make(map[int]bool)}
	for _, kin := range list {
		e.listed[kin.PID] = kin
	}
	if r.Group != "" {
		ended, err = endGroup(ctx, r.Group, r.GroupInode)
	}
	if len(list) == 0 && r.Mark == "" {
		return ended, err
	}
	pause := shortestPause
	for quiet := 0; quiet < quietLooks; {
		found, lookErr := e.look()
		switch {
		case lookErr != nil: // it lacks something, which may come back
			quiet, pause = 0, longestPause
		case len(found) == 0:
			quiet, pause = quiet+1, shortestPause
		default:
			quiet, pause = 0, min(2*pause, longestPause)
			ended += e.kill(found)
		}
		if sleep(pause, ctx.Done()) {
			return ended, errors.Join(err, lookErr, fmt.Errorf("%d processes don't end: %w", len(found), ctx.Err()))
		}
	}
	return ended, err
}

// Ticks is now, in the clock ticks since the machine began that [EndRemains] takes.
func Ticks() uint64 { return ticks() }

// bootID names this start of the machine; starts and numbers of processes mean nothing
// beyond it.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}

// ending is the end of what one host left.
type ending struct {
	remains Remains
	died    uint64
	self    int
	listed  map[int]Kin
	// known are those who were proven before, by start.
	known map[int]uint64
	// ours are the sessions of theirs, in the newest look.
	ours map[int]bool
	// killed are those who were met and counted.
	killed map[Kin]struct{}
}

// look finds who is alive of the host's, in no order.
func (e *ending) look() ([]stat, error) {
	all, err := scan()
	if err != nil {
		return nil, err
	}
	byPID := make(map[int]stat, len(all))
	children := make(map[int][]stat)
	sessions := make(map[int][]stat)
	for _, s := range all {
		byPID[s.pid] = s
		children[s.parent] = append(children[s.parent], s)
		sessions[s.session] = append(sessions[s.session], s)
	}
	proven := make(map[int]stat)
	ours := make(map[int]bool)
	var todo []stat
	add := func(s stat) {
		if _, ok := proven[s.pid]; !ok && s.pid != e.self && s.pid != 1 {
			proven[s.pid] = s
			todo = append(todo, s)
		}
	}
	for _, s := range all {
		if e.seed(s, byPID) {
			add(s)
		}
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, child := range children[s.pid] {
			if child.start >= s.start { // else the number has changed hands during the look
				add(child)
			}
		}
		if !ours[s.session] && e.made(s, proven, byPID) {
			ours[s.session] = true
			for _, other := range sessions[s.session] {
				add(other)
			}
		}
	}
	e.ours = ours
	clear(e.known)
	var found []stat
	for _, s := range proven {
		e.known[s.pid] = s.start
		if !s.dead {
			found = append(found, s)
		}
	}
	return found, nil
}

// seed tells that a process is the host's whoever its parents are.
func (e *ending) seed(s stat, byPID map[int]stat) bool {
	if s.start < e.remains.Since {
		return false
	}
	if kin, ok := e.listed[s.pid]; ok && kin.Start == s.start {
		return true
	}
	if start, ok := e.known[s.pid]; ok && start == s.start {
		return true
	}
	if e.ours[s.session] {
		return true
	}
	// The session of a leader that is gone: until the host died nobody else could have
	// its number, and who is in it since before then is in that leader's session.
	if kin, ok := e.listed[s.session]; ok && kin.Leader && s.start <= e.died && s.start >= kin.Start {
		if leader, there := byPID[s.session]; !there || leader.start == kin.Start {
			return true
		}
	}
	return e.stamped(s) || e.marked(s)
}

// stamped tells that a process bears one of the host's stamps. Whose it is by now is of
// no account: nobody else could have it.
func (e *ending) stamped(s stat) bool {
	if e.remains.Stamp == 0 || s.dead {
		return false
	}
	stamp, ok := stampOf(s.pid)
	if !ok || stamp>>stampNumbers != e.remains.Stamp {
		return false
	}
	now, ok := statOf(s.pid)
	return ok && now.start == s.start // else the number has changed hands meanwhile
}

// made tells that the session of a process of ours was made by one of ours. A session
// that a task did not make is the one that it was started from, never a task's: leaders
// of trees are leaders of sessions.
func (e *ending) made(s stat, proven, byPID map[int]stat) bool {
	if s.session == 0 || s.session == e.remains.Session {
		return false
	}
	if leader, there := byPID[s.session]; there {
		_, ok := proven[s.session]
		return ok && leader.start <= s.start
	}
	return true // its maker is gone, and a session is never entered from outside
}

// marked tells that a process bears the host's mark.
func (e *ending) marked(s stat) bool {
	if e.remains.Mark == "" || s.dead {
		return false
	}
	dir := "/proc/" + strconv.Itoa(s.pid)
	var owner unix.Stat_t
	if unix.Stat(dir, &owner) != nil || owner.Uid != e.remains.User && owner.Uid != uint32(os.Geteuid()) {
		return false
	}
	environ, err := os.ReadFile(dir + "/environ")
	if err != nil {
		return false
	}
	want := []byte(remainsMark + e.remains.Mark)
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, want) {
			now, ok := statOf(s.pid)
			return ok && now.start == s.start // else the number has changed hands meanwhile
		}
	}
	return false
}

// kill kills those who were found, and their process groups as wholes, which nobody in
// them outruns by forking. It counts whom it meets for the first time.
func (e *ending) kill(found []stat) (fresh int) {
	if e.killed == nil {
		e.killed = make(map[Kin]struct{})
	}
	groups := make(map[int]struct{})
	for _, s := range found {
		if s.member().signal(syscall.SIGKILL) == nil {
			key := Kin{PID: s.pid, Start: s.start}
			if _, again := e.killed[key]; !again {
				e.killed[key] = struct{}{}
				fresh++
			}
		}
		if _, done := groups[s.group]; done || s.group <= 1 || s.group == e.self || !e.ours[s.session] {
			continue
		}
		// The dead hold their group's number too, until they are reaped.
		if now, ok := statOf(s.pid); ok && now.start == s.start && now.group == s.group {
			groups[s.group] = struct{}{}
			_ = syscall.Kill(-s.group, syscall.SIGKILL)
		}
	}
	return fresh
}
