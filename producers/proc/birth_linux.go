package proc

import (
	"slices"
	"strings"
)

// birth is what is known of a leader before it is there.
type birth struct {
	at    uint64
	mark  string
	pipes []string
	stamp uint64
}

// expect notes a birth that is about to be.
func expect(spec *Spec, stamp uint64) birth {
	b := birth{at: ticks(), stamp: stamp}
	for _, entry := range spec.Env {
		if mark, ok := strings.CutPrefix(entry, markVariable); ok && mark != "" {
			b.mark = mark
		}
	}
	for _, fd := range spec.Files[min(1, len(spec.Files)):min(3, len(spec.Files))] {
		if pipe := pipeOf(fd); pipe != "" && !slices.Contains(b.pipes, pipe) {
			b.pipes = append(b.pipes, pipe)
		}
	}
	return b
}
