package bash

import (
	"fmt"
	"maps"
	"strings"

	"afoot/producers/proc"
)

// maxNamed bounds how many processes an error names.
const maxNamed = 10

// unfinished says of what keeps the producer from closing which processes there are.
func (p *Producer) unfinished(err error) error {
	p.mu.Lock()
	runs := maps.Clone(p.living)
	maps.Copy(runs, p.haunted) // one that is just ending is both
	p.mu.Unlock()
	var left []proc.Member
	commands := 0
	for r := range runs {
		if tree := r.tree(); tree != nil {
			commands++
			members, _ := tree.Members() // who can't be listed can't be named
			left = append(left, members...)
		}
	}
	names := make([]string, 0, maxNamed+1)
	for _, member := range left[:min(len(left), maxNamed)] {
		names = append(names, fmt.Sprintf("%d (%s)", member.PID, member.Name()))
	}
	if more := len(left) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		names = append(names, "none that can be found")
	}
	return fmt.Errorf("%d commands have not ended, of which these processes are left: %s: %w", commands, strings.Join(names, ", "), err)
}

// tree is that of a run that lives or left somebody; nil else.
func (r *run) tree() *proc.Tree {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.live != nil:
		return r.live.process.Tree()
	case r.ghosts != nil:
		return r.ghosts.tree
	}
	return nil
}
