package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controlName is the socket in the state directory by which commands of the daemon's
// own user ask for what is never done over HTTP.
const controlName = "control"

// What can be asked for.
const (
	controlReload = "reload"
	controlBackup = "backup"
)

// controlPatience bounds the reading of a question and the writing of an answer.
const controlPatience = 5 * time.Second

// longestOrder bounds the line of a question, in bytes.
const longestOrder = 16 << 10

// longestSocketPath is what a socket's address takes on every system.
const longestSocketPath = 100

// order is one question, a line of JSON.
type order struct {
	Do   string `json:"do"`
	File string `json:"file,omitempty"`
}

// verdict is its answer.
type verdict struct {
	// Error says why nothing was done.
	Error string `json:"error,omitempty"`
	// Lines say what was done, for people.
	Lines []string `json:"lines,omitempty"`
}

// control answers orders, one connection each.
type control struct {
	listener net.Listener
	dir      string // the state directory
	obey     func(ctx context.Context, o order) verdict
	ctx      context.Context //nolint:containedctx // it ends with what is under way
	cancel   context.CancelFunc
	work     sync.WaitGroup
	entry    *entry // what accepts now

	mu sync.Mutex
	// conns are those that have not been answered, with what they ask for; "" if that is
	// not known yet.
	conns map[net.Conn]string
	// paused, when not nil, is closed when orders are read again.
	paused chan struct{}
}

// openControl listens in the state directory; the caller holds its lock, so that a
// socket that is there has no owner.
func openControl(dir string, obey func(context.Context, order) verdict) (*control, error) {
	listener, err := listenControl(dir)
	if err != nil {
		return nil, err
	}
	return serveControl(dir, listener, obey), nil
}

func listenControl(dir string) (net.Listener, error) {
	path, done, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Remove(filepath.Join(dir, controlName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// A socket without a name gives its mode to the one that it gets, on Linux; elsewhere
	// the directory alone keeps others away until the mode is changed.
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) //nolint:forcetypeassert // of a network of that name
	if err := os.Chmod(filepath.Join(dir, controlName), 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func serveControl(dir string, listener net.Listener, obey func(context.Context, order) verdict) *control {
	ctx, cancel := context.WithCancel(context.Background())
	c := &control{listener: listener, dir: dir, obey: obey, ctx: ctx, cancel: cancel, conns: make(map[net.Conn]string)}
	c.open()
	return c
}

// open begins to accept.
func (c *control) open() {
	e := newEntry(c.listener)
	c.entry = e
	c.work.Go(func() { c.accept(c.ctx, e) })
}

// pause accepts nothing until resume, and gives the connections that wait for the answer
// to a reload, which another image of the program gives, and those that have not asked yet.
func (c *control) pause() (reloads, fresh []net.Conn) {
	c.entry.pause()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = make(chan struct{})
	for conn, do := range c.conns {
		switch do {
		case controlReload:
			reloads = append(reloads, conn)
		case "":
			fresh = append(fresh, conn)
		}
	}
	return reloads, fresh
}

func (c *control) resume() {
	c.mu.Lock()
	close(c.paused)
	c.paused = nil
	c.mu.Unlock()
	_ = c.entry.Close()
	c.open()
}

// take answers a connection.
func (c *control) take(conn net.Conn) {
	c.mu.Lock()
	c.conns[conn] = ""
	c.mu.Unlock()
	c.work.Go(func() {
		defer func() { _ = conn.Close() }()
		c.serve(c.ctx, conn)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, conn)
	})
}

// socketPath gives an address that is short enough; done gives back what it needs.
func socketPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, controlName)
	if len(path) <= longestSocketPath {
		return path, func() {}, nil
	}
	at, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), controlName), func() { _ = at.Close() }, nil
}

func (c *control) accept(ctx context.Context, from net.Listener) {
	for {
		conn, err := from.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // out of descriptors, perhaps
			case <-ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		c.take(conn)
	}
}

func (c *control) serve(ctx context.Context, conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(controlPatience))
	var answer verdict
	if err := ownPeer(conn); err != nil {
		answer.Error = err.Error()
	} else {
		o, err := c.read(ctx, conn)
		if err != nil {
			return
		}
		answer = c.obey(ctx, o)
	}
	answer.send(conn)
}

// read gives what is asked for. While c pauses nothing is taken out of a connection: its
// order is read by another image of the program, or by this one after all.
func (c *control) read(ctx context.Context, conn net.Conn) (o order, err error) {
	socket, err := conn.(*net.UnixConn).SyscallConn() //nolint:forcetypeassert // of a listener of that network
	if err != nil {
		return o, err
	}
	for {
		var paused chan struct{}
		readErr := socket.Read(func(fd uintptr) (done bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if paused = c.paused; paused != nil {
				return true
			}
			var line []byte
			if line, err = takeLine(int(fd)); errors.Is(err, unix.EAGAIN) {
				return false
			}
			if err == nil {
				err = json.Unmarshal(line, &o)
			}
			c.conns[conn] = o.Do
			return true
		})
		if paused == nil || readErr != nil {
			return o, cmp.Or(readErr, err)
		}
		select {
		case <-paused:
		case <-ctx.Done():
			return o, ctx.Err()
		}
	}
}

// takeLine takes a whole line out of a socket or nothing: EAGAIN if it has not come.
func takeLine(fd int) ([]byte, error) {
	line := make([]byte, longestOrder)
	n, _, err := unix.Recvfrom(fd, line, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, err
	}
	end := bytes.IndexByte(line[:n], '\n') + 1
	switch {
	case end > 0:
		n, err = unix.Read(fd, line[:end])
		return line[:n], err
	case n == 0 || n == len(line):
		return nil, io.ErrUnexpectedEOF
	default:
		return nil, unix.EAGAIN
	}
}

// send answers. Who has left does not hear it.
func (answer verdict) send(conn net.Conn) {
	text, err := json.Marshal(answer)
	if err != nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(controlPatience))
	_, _ = conn.Write(append(text, '\n'))
}

// ownPeer refuses everybody but the daemon's own user, and root.
func ownPeer(conn net.Conn) error {
	uid, err := peerUser(conn)
	if err != nil {
		return fmt.Errorf("who asks is not known: %w", err)
	}
	if uid != os.Geteuid() && uid != 0 {
		return errors.New("only the daemon's own user may ask for that")
	}
	return nil
}

// close ends what is under way and waits for it. The socket goes with it; it is only
// closed while the lock of the state directory is held.
func (c *control) close() error {
	err := errors.Join(os.Remove(filepath.Join(c.dir, controlName)), c.listener.Close())
	_ = c.entry.Close()
	c.cancel()
	c.work.Wait()
	return err
}

// ask gives an order to the daemon that runs with a state directory; fs.ErrNotExist
// says that none does.
func ask(ctx context.Context, dir string, o order) (verdict, error) {
	path, done, err := socketPath(dir)
	if err != nil {
		return verdict{}, err
	}
	defer done()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return verdict{}, fs.ErrNotExist
	}
	if err != nil {
		return verdict{}, fmt.Errorf("control socket: %w", err)
	}
	defer func() { _ = conn.Close() }()
	text, err := json.Marshal(o)
	if err != nil {
		return verdict{}, err
	}
	if _, err := conn.Write(append(text, '\n')); err != nil {
		return verdict{}, fmt.Errorf("control socket: %w", err)
	}
	var answer verdict
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return verdict{}, fmt.Errorf("the daemon did not answer: %w", err)
	}
	if answer.Error != "" {
		return verdict{}, errors.New(answer.Error)
	}
	return answer, nil
}
