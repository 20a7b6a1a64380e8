package proc

import "syscall"

// The nets by name, and the best of them that works.
const (
	netAuto      = "auto"
	netCgroup    = "cgroup"
	netSubreaper = "subreaper"
	netGroup     = "group"
)

// Member is one live process of a tree. Its number and start time together name
// it for as long as the machine runs.
type Member struct {
	PID   int
	start uint64
	group int
	// exiting says that it was on its way out: it runs nothing any more.
	exiting bool
}

// net says who belongs to a tree. Each catches what others miss; whatever it
// signals is proven to belong.
type net interface {
	// empty is cheap. It may be false for an empty tree, never true for a live one.
	empty() bool
	// members lists who is alive; zombies are not.
	members() ([]Member, error)
	// release gives back what names the tree. An empty tree stays empty.
	release()
	// signal signals the whole tree, of which members were found just now.
	signal(sig syscall.Signal, members []Member)
}
