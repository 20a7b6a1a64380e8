package proc

// OverMemory reports whether the kernel killed somebody of the tree because it was
// over its limit of memory, as far as the net can tell. It is asked before
// [Process.Reap].
func (p *Process) OverMemory() bool {
	limited, ok := p.tree.net.(interface{ overMemory() bool })
	return ok && limited.overMemory()
}
