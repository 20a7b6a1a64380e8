package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// bulk is the barest server of a followed log: a child's pipe is spliced into a
// file, and what has come is sent from the file by sendfile.
func (b *bare) bulk(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(r.URL.Query().Get("bytes"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"); err != nil {
		return
	}
	if err := b.spliced(size, conn); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
	}
}

func (b *bare) spliced(size int, to io.Writer) (err error) {
	file, err := os.CreateTemp("", "afoot-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	cmd := exec.Command(b.bash, "-c", bulkCommand(size))
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return err
	}
	g := &grown{}
	g.cond.L = &g.mu
	go g.pump(read, file)
	err = g.send(file, to)
	_ = read.Close() // a child that still writes ends
	return errors.Join(err, cmd.Wait())
}

// grown is a file that another goroutine fills.
type grown struct {
	mu   sync.Mutex
	cond sync.Cond
	size int64
	over bool
	err  error
}

func (g *grown) pump(from, to *os.File) {
	in, out := int(from.Fd()), int(to.Fd()) // both block now
	_, _ = unix.FcntlInt(uintptr(in), unix.F_SETPIPE_SZ, mib)
	var offset int64
	for {
		n, err := unix.Splice(in, nil, out, &offset, mib, unix.SPLICE_F_MOVE)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		g.mu.Lock()
		g.size += max(0, n)
		g.over, g.err = n <= 0, err
		g.cond.Broadcast()
		g.mu.Unlock()
		if n <= 0 {
			return
		}
	}
}

// send gives what comes until the end.
func (g *grown) send(from *os.File, to io.Writer) error {
	sent := int64(0)
	for {
		g.mu.Lock()
		for g.size == sent && !g.over {
			g.cond.Wait()
		}
		size, over, err := g.size, g.over, g.err
		g.mu.Unlock()
		if size == sent && over {
			return err
		}
		n, err := io.Copy(to, io.LimitReader(from, size-sent)) // sendfile
		sent += n
		if err != nil {
			return err
		}
	}
}
