package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"afoot/producers/output"
)

// luggageVariable has the descriptor of what an image of this program hands to the next.
// It is gone before anybody else looks at the environment.
const luggageVariable = envPrefix + "_LUGGAGE"

// luggage is what passes an exec, beside the journal. Files are descriptors. The methods
// work on nil: then nothing has passed, and they do what is done at any start.
type luggage struct {
	Version string   `json:"version"`
	Program string   `json:"program"`
	Lines   []string `json:"lines"`
	// BySignal says that SIGUSR2 was listened to.
	BySignal bool `json:"bySignal"`

	Listener int `json:"listener"`
	Control  int `json:"control"`
	Lock     int `json:"lock"`
	// Orders are connections that wait for the answer to the reload.
	Orders []int `json:"orders"`
	// Fresh are connections to Control that have not asked for anything yet.
	Fresh []int `json:"fresh"`
	// Watchdog is the pipe to the watchdog, -1 for none.
	Watchdog    int `json:"watchdog"`
	WatchdogPID int `json:"watchdogPid"`

	Tasks    json.RawMessage `json:"tasks"`
	Commands json.RawMessage `json:"commands"`
	Sink     json.RawMessage `json:"sink"`
}

// arrive takes what an earlier image of this process has handed over; nil if this is no
// exec of one. From then on no descriptor but the standard ones is inherited.
func arrive() (*luggage, error) {
	text, found := os.LookupEnv(luggageVariable) //nolint:forbidigo // it is not configuration
	if !found {
		return nil, nil //nolint:nilnil // nothing was handed over
	}
	_ = os.Unsetenv(luggageVariable) //nolint:forbidigo // nobody is to see it
	fail := func(err error) (*luggage, error) {
		return nil, fmt.Errorf("what %s=%s names can't be taken over: %w", luggageVariable, text, err)
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return fail(errors.New("it is no descriptor"))
	}
	if err := closeAllOnExec(); err != nil {
		return fail(err)
	}
	file := os.NewFile(uintptr(fd), "luggage")
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fail(err)
	}
	var l luggage
	if err := json.NewDecoder(file).Decode(&l); err != nil {
		return fail(err)
	}
	return &l, nil
}

func (l *luggage) tasks() json.RawMessage {
	if l == nil {
		return nil
	}
	return l.Tasks
}

func (l *luggage) commands() json.RawMessage {
	if l == nil {
		return nil
	}
	return l.Commands
}

func (l *luggage) openSink() (*output.Sink, error) {
	if l == nil {
		return output.NewSink()
	}
	return output.AdoptSink(l.Sink)
}

// stateLock gives the lock of the state directory, which stays taken across an exec.
func (l *luggage) stateLock(dir *os.File) (*os.File, error) {
	if l == nil {
		return lockStateDir(dir)
	}
	lock := os.NewFile(uintptr(l.Lock), filepath.Join(dir.Name(), lockName))
	if err := takeLock(lock, dir.Name()); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (l *luggage) listen(ctx context.Context, addr Address) (net.Listener, error) {
	if l == nil {
		return listen(ctx, addr)
	}
	listener, err := inheritedListener(l.Listener)
	if unix, is := listener.(*net.UnixListener); is {
		unix.SetUnlinkOnClose(true)
	}
	return listener, err
}

func (l *luggage) openControl(dir string, obey func(context.Context, order) verdict) (*control, error) {
	if l == nil {
		return openControl(dir, obey)
	}
	listener, err := inheritedListener(l.Control)
	if err != nil {
		return nil, err
	}
	c := serveControl(dir, listener, obey)
	for _, fd := range l.Fresh {
		if conn, err := inheritedConn(fd); err == nil {
			c.take(conn)
		}
	}
	return c, nil
}

func inheritedConn(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "connection")
	defer func() { _ = file.Close() }()
	return net.FileConn(file)
}

func inheritedListener(fd int) (net.Listener, error) {
	file := os.NewFile(uintptr(fd), "listener")
	listener, err := net.FileListener(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("inherited listener: %w", err)
	}
	return listener, nil
}

// dismissWatchdog sends the watchdog of the earlier image away, once there is another.
func (l *luggage) dismissWatchdog() {
	if l == nil || l.Watchdog < 0 {
		return
	}
	pipe := os.NewFile(uintptr(l.Watchdog), "watchdog")
	_, _ = pipe.Write([]byte{farewell, '\n'})
	_ = pipe.Close()
	process, err := os.FindProcess(l.WatchdogPID)
	if err != nil {
		return
	}
	timer := time.AfterFunc(farewellPatience, func() { _ = process.Kill() })
	_, _ = process.Wait()
	timer.Stop()
}

// arrived answers who asked for the reload: requests are taken.
func (l *luggage) arrived(log *slog.Logger) {
	if l == nil {
		return
	}
	now := buildVersion().Version
	lines := append([]string{fmt.Sprintf("afoot %s was replaced by afoot %s", l.Version, now)}, l.Lines...)
	log.Info("reloaded", "from", l.Version, "to", now, "changes", strings.Join(l.Lines, "; "))
	for _, fd := range l.Orders {
		if conn, err := inheritedConn(fd); err == nil {
			verdict{Lines: lines}.send(conn)
			_ = conn.Close()
		}
	}
}

// programPath is where this program was started from, so that what lies there later is
// another version of it: a link leads on to it. Where that is not known it is the file
// itself.
func programPath(from *luggage) string {
	if from != nil {
		return from.Program
	}
	if path, err := exec.LookPath(os.Args[0]); err == nil {
		if path, err = filepath.Abs(path); err == nil && isRunning(path) {
			return path
		}
	}
	path, _ := os.Executable() // else the reload says so
	return path
}

// isRunning says whether a file is the one that this process runs.
func isRunning(path string) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	running, err := os.Stat(ownBinary())
	return err == nil && os.SameFile(there, running)
}
