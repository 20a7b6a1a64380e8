package journal

import (
	"sync/atomic"
	"time"
)

// Stats is what a journal has done and has to do.
type Stats struct {
	// Queue counts the changes in line.
	Queue int
	// Commits and Rows count transactions and what they wrote; Took is their time
	// altogether and Longest that of the slowest.
	Commits, Rows uint64
	Took, Longest time.Duration
	// Troubles counts how often trouble began. InTrouble says that it is now.
	Troubles  uint64
	InTrouble bool
}

type stats struct{ commits, rows, took, longest, begun atomic.Uint64 }

// landed is called by the writer alone.
func (s *stats) landed(rows int, took time.Duration) {
	s.commits.Add(1)
	s.rows.Add(uint64(rows))
	s.took.Add(uint64(took))
	s.longest.Store(max(s.longest.Load(), uint64(took)))
}

// Stats counts. It does not block on the disk.
func (j *Journal) Stats() Stats {
	return Stats{
		Queue:     j.line.length(),
		Commits:   j.stats.commits.Load(),
		Rows:      j.stats.rows.Load(),
		Took:      time.Duration(j.stats.took.Load()),
		Longest:   time.Duration(j.stats.longest.Load()),
		Troubles:  j.stats.begun.Load(),
		InTrouble: j.refusal.Load() != nil,
	}
}
