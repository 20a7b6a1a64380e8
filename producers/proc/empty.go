package proc

// Empty tells which of some trees, whose leaders were reaped, have nobody left; what
// those kept is given back. It is cheap, also for a thousand trees. It may miss an empty
// tree, and never takes one for empty in which somebody lives.
func (h *Host) Empty(trees []*Tree) []bool {
	empty := h.nets.empty(trees)
	for i, is := range empty {
		if is {
			trees[i].net.release()
		}
	}
	return empty
}

// each asks one tree after the other.
func each(trees []*Tree) []bool {
	empty := make([]bool, len(trees))
	for i, tree := range trees {
		empty[i] = tree.net.empty()
	}
	return empty
}
