package auth

import "strings"

// Scopes is a set of permissions. The zero value allows nothing.
type Scopes uint8

// The scopes of Afoot.
const (
	// TasksRead looks: lists, snapshots, reads and waits by offset.
	TasksRead Scopes = 1 << iota
	// TasksWrite does everything with tasks, and so implies TasksRead.
	TasksWrite
	// Metrics reads /metrics.
	Metrics
)

// scopeNames are the names on the wire, in the order of their bits.
func scopeNames() [3]string { return [...]string{"tasks:read", "tasks:write", "metrics"} }

// ParseScopes reads names separated by spaces. Unknown names are a KindInvalid
// error that names the first of them; the set holds the known ones all the same.
func ParseScopes(s string) (Scopes, error) {
	var set Scopes
	var err error
fields:
	for field := range strings.FieldsSeq(s) {
		for i, name := range scopeNames() {
			if field == name {
				set |= 1 << i
				continue fields
			}
		}
		if err == nil {
			err = refuse(KindInvalid, "the scope %+q is unknown; there are %s", field, strings.Join(names(), ", "))
		}
	}
	return set, err
}

// Has reports whether the set covers all of want.
func (s Scopes) Has(want Scopes) bool {
	if s&TasksWrite != 0 {
		s |= TasksRead
	}
	return s&want == want
}

// String gives the names, separated by spaces, as the claim has them.
func (s Scopes) String() string {
	var b strings.Builder
	for i, name := range scopeNames() {
		if s&(1<<i) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name)
	}
	return b.String()
}

func names() []string {
	all := scopeNames()
	return all[:]
}
