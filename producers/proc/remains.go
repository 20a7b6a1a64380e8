package proc

// Remains names what a host leaves if its program ends without closing it, for
// [EndRemains] of another program, at the same start of the machine.
type Remains struct {
	// Boot names that start.
	Boot string `json:"boot"`
	// Since is when the host was made, in clock ticks since then.
	Since uint64 `json:"since"`
	// Session is the program's own session, in which no tree is.
	Session int `json:"session"`
	// User is whom processes run as, beside the program's own user.
	User uint32 `json:"user"`
	// Group is the directory of the host's control group, "" if there is none, and
	// GroupInode tells it from a later one of that name.
	Group      string `json:"group,omitempty"`
	GroupInode uint64 `json:"groupInode,omitempty"`
	// Mark is in the environment of all processes of a host without control groups.
	Mark string `json:"mark,omitempty"`
	// Stamp is what the stamps of all processes of such a host begin with, 0 if they have
	// none.
	Stamp uint64 `json:"stamp,omitempty"`
}
