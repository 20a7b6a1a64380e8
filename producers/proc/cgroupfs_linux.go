package proc

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// home is a control group of version 2, by its directory and by the name that
// /proc/PID/cgroup shows of it.
type home struct{ dir, name string }

// findHomes lists where this program's own control group can be reached. The file
// system may be mounted anywhere, more than once, and in part.
func findHomes() ([]home, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return homesIn(string(mounts), string(groups))
}

func homesIn(mounts, groups string) ([]home, error) {
	name, ok := unifiedName(groups)
	if !ok {
		return nil, errors.New("the kernel has no control groups of version 2")
	}
	var homes []home
	mounted := false
	for line := range strings.Lines(mounts) {
		front, back, _ := strings.Cut(line, " - ")
		fields := strings.Fields(front)
		if kind, _, _ := strings.Cut(back, " "); kind != "cgroup2" || len(fields) < 5 {
			continue
		}
		mounted = true
		root, at := unescape(fields[3]), unescape(fields[4])
		if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")); ok && (rest == "" || rest[0] == '/') {
			homes = append(homes, home{dir: path.Join(at, rest), name: name})
		}
	}
	switch {
	case !mounted:
		return nil, errors.New("control groups of version 2 are not mounted")
	case homes == nil:
		return nil, fmt.Errorf("this program's control group %s is not in what is mounted", name)
	}
	return homes, nil
}

// unifiedName gives the group of version 2 from /proc/PID/cgroup.
func unifiedName(groups string) (string, bool) {
	for line := range strings.Lines(groups) {
		if name, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(name, "\n"), true
		}
	}
	return "", false
}

// unescape undoes how mountinfo writes white space.
func unescape(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}
