package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"afoot/auth"
	"afoot/producers/bash"
	"afoot/producers/proc"
	"afoot/registry/journal"
)

// What a finding is.
const (
	findingOK       = "ok"
	findingNote     = "note"     // it is not as it was, and nothing can be done
	findingRepaired = "repaired" // it was wrong
	findingWrong    = "wrong"
)

// finding is what the doctor has to say of one thing.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
}

// agentKind is the kind in the ids of agents.
const agentKind = "agent"

// doctorPatience bounds the end of processes that are left.
const doctorPatience = 5 * time.Second

// doctor looks at a state directory.
type doctor struct {
	cfg *Config
	dir string
	// look says that nothing is to be mended, repair that what is safe may be: no daemon
	// runs, and none can start.
	look, repair bool
	// accept says that what is lost of a damaged journal may be given up, accepted that
	// it was.
	accept, accepted bool
	running          bool
	findings         []finding
}

func (d *doctor) say(check, state, text string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, State: state, Text: fmt.Sprintf(text, args...)})
}

// mend says that something is wrong, and mends it if it may.
func (d *doctor) mend(check, wrong, done string, repair func() error) {
	d.mendIf(d.repair, check, wrong, done, repair)
}

func (d *doctor) mendIf(may bool, check, wrong, done string, repair func() error) {
	if !may {
		d.say(check, findingWrong, "%s", wrong)
		return
	}
	if err := repair(); err != nil {
		d.say(check, findingWrong, "%s; it can't be mended: %s", wrong, oneLine(err))
		return
	}
	d.say(check, findingRepaired, "%s: %s", wrong, done)
}

// examine looks at everything. A daemon may run; then nothing is mended.
func (d *doctor) examine(ctx context.Context) {
	lock, there := d.directory()
	if !there {
		return
	}
	if lock != nil {
		defer func() { _ = lock.Close() }()
	}
	d.secret()
	rows := d.journal()
	d.output(rows)
	d.leftFiles()
	d.left(ctx)
	d.groups(ctx)
}

// directory looks at the state directory, and takes its lock if nobody has it.
func (d *doctor) directory() (lock *os.File, there bool) {
	const check = "directory"
	info, err := os.Lstat(d.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.say(check, findingNote, "%s is not there: the first start makes it", d.dir)
		return nil, false
	case err != nil:
		d.say(check, findingWrong, "%s", oneLine(err))
		return nil, false
	case !info.IsDir():
		d.say(check, findingWrong, "%s is a symbolic link or a file: it must be a directory of its own", d.dir)
		return nil, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		d.say(check, findingWrong, "%s belongs to user %d, and this is user %d", d.dir, st.Uid, os.Geteuid())
		return nil, false
	}
	lock = d.lock()
	if mode := info.Mode().Perm(); mode != 0o700 {
		d.mend(check, fmt.Sprintf("%s has mode %04o", d.dir, mode), "closed to others", func() error { return os.Chmod(d.dir, 0o700) }) //nolint:gosec // a directory's own user has to enter it
	} else {
		d.say(check, findingOK, "%s belongs to this user alone", d.dir)
	}
	return lock, true
}

// lock finds out whether a daemon runs. Without one the lock is held meanwhile, so that
// none starts.
func (d *doctor) lock() *os.File {
	const check = "daemon"
	fd, err := unix.Open(filepath.Join(d.dir, lockName), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) {
		d.say(check, findingOK, "none runs, and none ever did here")
		return nil
	}
	if err != nil {
		d.running = true // nobody knows
		d.say(check, findingWrong, "the lock file can't be opened: %s", err)
		return nil
	}
	lock := os.NewFile(uintptr(fd), lockName)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		d.running = true
		d.say(check, findingOK, "it runs (%s): nothing is mended meanwhile, and its output and processes are its own affair", holder(lock))
		d.repair = false
		_ = lock.Close()
		return nil
	}
	d.say(check, findingOK, "none runs")
	return lock
}

func (d *doctor) secret() {
	const check = "secret"
	path := d.cfg.secretFile()
	_, err := auth.LoadSecret(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.cfg.JWTSecretFile == "":
		d.say(check, findingNote, "there is none: the next start makes one, and tokens of an earlier one are not good any more")
	case err != nil:
		d.say(check, findingWrong, "%s", oneLine(err))
	default:
		d.say(check, findingOK, "%s is good", path)
	}
}

// journal gives the output that rows refer to, by task; nil if that is not known.
func (d *doctor) journal() map[string]string {
	const check = "journal"
	path := journalPath(d.dir)
	if !d.acceptLoss(path) {
		return nil
	}
	if d.repair {
		done, err := journal.Repair(path)
		for _, text := range done {
			d.say(check, findingRepaired, "%s", text)
		}
		if err != nil {
			d.say(check, findingWrong, "%s", oneLine(err))
			return nil
		}
	}
	report, err := journal.Inspect(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.say(check, findingNote, "there is none: the next start makes one")
		return map[string]string{}
	case err != nil:
		d.say(check, findingWrong, "%s", oneLine(err))
		return nil
	}
	for _, problem := range report.Problems {
		d.say(check, findingWrong, "%s: %s; go back to a file made by \"afoot backup\", or move it and the files named like it away to begin with nothing", path, problem)
	}
	if mode := report.Mode; mode&0o077 != 0 {
		d.say(check, findingWrong, "%s has mode %04o", path, mode)
	}
	if len(report.Problems) > 0 {
		return nil
	}
	if report.Rows != nil {
		d.say(check, findingOK, "%s is sound: version %d, %d tasks, %d notices, %d bytes", path, report.Version, report.Rows["tasks"], report.Rows["notices"], report.Size+report.Log)
	}
	if d.running {
		return nil
	}
	memory, err := journal.Peek(path)
	if err != nil {
		d.say(check, findingNote, "its rows were not read: %s", oneLine(err))
		return nil
	}
	files := make(map[string]string)
	for _, task := range memory.Tasks {
		var handle any
		if json.Unmarshal(task.Handle, &handle) == nil {
			filesIn(handle, func(name string) { files[name] = string(task.Snapshot.ID) })
		}
	}
	return files
}

// acceptLoss gives up what a damaged journal has lost, if that is asked for; false if the
// journal is no good afterwards.
func (d *doctor) acceptLoss(path string) bool {
	if !d.repair || !d.accept {
		return true
	}
	const check = "journal"
	done, err := journal.AcceptLoss(path, bash.Kind, agentKind)
	for _, text := range done {
		d.accepted = true
		d.say(check, findingRepaired, "%s: %s", path, text)
	}
	if err != nil {
		d.say(check, findingWrong, "%s", oneLine(err))
	}
	return err == nil
}

// filesIn finds what a handle names as its files.
func filesIn(value any, found func(name string)) {
	object, ok := value.(map[string]any)
	if !ok {
		return
	}
	for name, member := range object {
		if file, ok := member.(string); ok && name == "file" && file != "" {
			found(file)
		}
		filesIn(member, found)
	}
}

// leftFiles looks for what a daemon removes when it ends as it should.
func (d *doctor) leftFiles() {
	if d.running {
		return
	}
	for _, name := range []string{listenName, controlName} {
		path := filepath.Join(d.dir, name)
		if _, err := os.Lstat(path); err == nil {
			d.mend("directory", path+" was left by a daemon that ended suddenly", "removed", func() error { return os.Remove(path) })
		}
	}
}

// left looks for processes of a daemon that ended suddenly.
func (d *doctor) left(ctx context.Context) {
	const check = "processes"
	if d.running {
		return
	}
	path := filepath.Join(d.dir, remainsName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.say(check, findingOK, "none is left")
		return
	}
	var will lastWill
	if err == nil {
		err = json.Unmarshal(text, &will)
	}
	if err != nil {
		d.say(check, findingWrong, "what the last daemon left is not known: %s", oneLine(err))
		return
	}
	count, err := proc.CountRemains(will.Remains)
	if err != nil {
		d.say(check, findingWrong, "%s", oneLine(err))
		return
	}
	wrong := "the last daemon ended suddenly"
	if count > 0 {
		wrong += fmt.Sprintf(", and %d processes of its tasks live", count)
	}
	d.mend(check, wrong, "nobody is left", func() error {
		ctx, cancel := context.WithTimeout(ctx, doctorPatience)
		defer cancel()
		if _, err := will.execute(ctx, nil, proc.Ticks()); err != nil {
			return err
		}
		return os.Remove(path)
	})
}

// groups looks for control groups of dead daemons, whatever their state directory was.
func (d *doctor) groups(ctx context.Context) {
	const check = "groups"
	stale, err := proc.StaleGroups()
	if err != nil {
		d.say(check, findingWrong, "%s", oneLine(err))
		return
	}
	for _, group := range stale {
		// Its lock is free, so that it is nobody's, whoever runs here.
		d.mendIf(!d.look, check, fmt.Sprintf("the control group %s of a dead daemon has %d processes", group.Dir, group.Processes), "removed", func() error {
			ctx, cancel := context.WithTimeout(ctx, doctorPatience)
			defer cancel()
			_, err := group.End(ctx)
			return err
		})
	}
	if len(stale) == 0 {
		d.say(check, findingOK, "no control group of a dead daemon is left")
	}
}
