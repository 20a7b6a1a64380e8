package proc

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Stale is a control group that a dead host left.
type Stale struct {
	Dir string
	// Processes counts who lives in it.
	Processes int
}

// StaleGroups lists what dead hosts left beside this program's own control group. It
// changes nothing.
func StaleGroups() (found []Stale, err error) {
	homes, err := findHomes()
	if err != nil {
		return nil, nil //nolint:nilerr // where there are no control groups none is left
	}
	for _, at := range homes {
		entries, err := os.ReadDir(at.dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !entry.IsDir() || !strings.HasPrefix(entry.Name(), basePrefix) {
				continue
			}
			dir := filepath.Join(at.dir, entry.Name())
			lock, err := lockGroup(dir)
			if err != nil {
				continue // its host lives, or it is gone meanwhile
			}
			found = append(found, Stale{Dir: dir, Processes: population(dir)})
			_ = lock.Close()
		}
	}
	return found, nil
}

// population counts who lives in a group and below it.
func population(dir string) (count int) {
	procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // of threads: a group above names them
	count = len(strings.Fields(string(procs)))
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.IsDir() {
			count += population(filepath.Join(dir, entry.Name()))
		}
	}
	return count
}

// End ends who is left in the group and removes it, unless a live host has taken it.
func (s Stale) End(ctx context.Context) (ended int, err error) {
	return endGroup(ctx, s.Dir, 0)
}

// CountRemains counts who is left of a dead host, and ends nobody.
func CountRemains(r Remains) (count int, err error) {
	if r.Boot != bootID() || r.Mark == "" {
		return 0, nil
	}
	e := &ending{remains: r, died: ticks(), self: os.Getpid(), known: make(map[int]uint64)}
	found, err := e.look()
	return len(found), err
}
