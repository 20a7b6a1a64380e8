package bash

import (
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"afoot/producers/proc"
)

// as gives the environment the home and the names of another user; one that the
// system does not know has no name and lives in /.
func (e environ) as(uid uint32) environ {
	home, name := "/", ""
	if known, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		name = known.Username
		if filepath.IsAbs(known.HomeDir) {
			home = known.HomeDir
		}
	}
	e = e.set("HOME", "HOME="+home)
	for _, variable := range []string{"USER", "LOGNAME"} {
		if name != "" {
			e = e.set(variable, variable+"="+name)
		} else {
			e = slices.DeleteFunc(e, func(entry string) bool { return strings.HasPrefix(entry, variable+"=") })
		}
	}
	return e
}

// prove runs the shell once as the user that commands run as, so that the daemon
// can't start without the right to, and what is forbidden later is the directory.
func (p *Producer) prove() error {
	null := p.host.Null()
	process, err := p.host.Start(proc.Spec{
		Path:  p.shell,
		Args:  []string{filepath.Base(p.shell), "-c", ":"},
		Dir:   "/",
		Env:   p.environ,
		Files: []uintptr{null, null, null},
	})
	if err != nil {
		return fmt.Errorf("run %s as user %d and group %d: %w", p.shell, p.runAs.UID, p.runAs.GID, err)
	}
	process.Wait()
	exit, err := process.Reap()
	process.Tree().Stop(0)
	if err == nil && exit != (proc.Exit{}) {
		err = fmt.Errorf("run %s as user %d and group %d: %s", p.shell, p.runAs.UID, p.runAs.GID, exit)
	}
	return err
}
