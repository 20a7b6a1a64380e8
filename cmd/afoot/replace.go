package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"afoot/sse"
)

// Bounds of a hand-over: for the work and what clients do, and for requests under way,
// which are cut then.
const (
	handOverPatience = 15 * time.Second
	requestPatience  = 5 * time.Second
)

// replace has another image of the program go on in this process. It returns only if
// that did not come to be: then all is as it was, and the error says why.
func (d *daemon) replace(ctx context.Context, environ, lines []string) error {
	to := &luggage{Version: buildVersion().Version, Program: d.program, Lines: lines, BySignal: d.bySignal, Watchdog: -1}
	var back undo
	defer back.all()
	if err := d.leave(ctx, to, &back); err != nil {
		return err
	}
	file, err := luggageFile()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	pipe, pid, release := d.house.guard.hold()
	defer release()
	var open inheritance
	defer open.end()
	to.Listener, to.Control, to.Lock = open.add(d.listener), open.add(d.control.listener), open.add(d.house.state.lock)
	reloads, fresh := d.control.pause()
	defer d.control.resume()
	for _, conn := range reloads {
		to.Orders = append(to.Orders, open.add(conn))
	}
	for _, conn := range fresh {
		to.Fresh = append(to.Fresh, open.add(conn))
	}
	if pipe != nil {
		to.Watchdog, to.WatchdogPID = open.add(pipe), pid
	}
	number := open.add(file)
	text, err := json.Marshal(to)
	if err = errors.Join(err, open.err); err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	if d.bySignal { // what comes in between must not be deadly
		signal.Ignore(syscall.SIGUSR2)
		defer signal.Notify(d.reloads, syscall.SIGUSR2)
	}
	select {
	case sig := <-d.signals:
		d.signals <- sig
		return errors.New("the daemon is shutting down")
	default:
	}
	err = syscall.Exec(d.program, os.Args, append(environ, fmt.Sprintf("%s=%d", luggageVariable, number)))
	return fmt.Errorf("the new binary %s can't be run, so the old one goes on: %w", d.program, err)
}

// leave stops what goes on elsewhere, from the outside to the inside: nobody is let in,
// streams and waits end, requests are awaited, and then all is at rest and written.
func (d *daemon) leave(ctx context.Context, to *luggage, back *undo) error {
	h := d.house
	ctx, cancel := context.WithTimeout(ctx, handOverPatience)
	defer cancel()
	d.door.pause()
	back.add(d.door.open)
	h.api.Leave()
	back.add(h.api.Stay)
	back.add(h.hub.Reopen)
	streams := make(chan error, 1)
	go func() { streams <- h.hub.Close(ctx, sse.ByeReload) }()
	err := h.service.HandOver(ctx)
	if err := <-streams; err != nil {
		d.log.Info("streams were cut that did not take their bye", keyError, err.Error())
	}
	d.finishRequests(ctx)
	if err != nil {
		return err
	}
	back.add(h.service.TakeBack)
	if to.Tasks, err = h.service.Moved(); err != nil { // behind the requests, which gave out more
		return err
	}
	back.add(h.bash.TakeBack)
	if to.Commands, err = h.bash.HandOver(); err != nil {
		return err
	}
	back.add(h.sink.TakeBack)
	if to.Sink, err = h.sink.HandOver(); err != nil {
		return fmt.Errorf("hand over the output of leftovers: %w", err)
	}
	back.add(h.hooks.Resume)
	h.pauseWebhooks(ctx)
	if err := h.journal.HandOver(ctx); err != nil {
		return err
	}
	back.add(h.journal.TakeBack)
	return nil
}

// finishRequests waits for the requests under way, and ends the connections.
func (d *daemon) finishRequests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	if err := d.door.finish(ctx); err != nil {
		d.log.Warn("requests were cut by the reload", keyError, err.Error())
	}
	if err := <-d.door.broken; !errors.Is(err, http.ErrServerClosed) {
		d.log.Warn("the server ended otherwise", keyError, err.Error())
	}
}

// undo is what has to be done if the hand-over fails, the newest first.
type undo struct{ steps []func() }

func (u *undo) add(step func()) { u.steps = append(u.steps, step) }

func (u *undo) all() {
	for len(u.steps) > 0 {
		last := len(u.steps) - 1
		u.steps[last]()
		u.steps = u.steps[:last]
	}
}

// inheritance are descriptors that stay open across an exec.
type inheritance struct {
	conns []syscall.Conn
	err   error
}

// add gives the number of a descriptor.
func (i *inheritance) add(open any) (number int) {
	conn, may := open.(syscall.Conn)
	if !may {
		i.err = errors.Join(i.err, fmt.Errorf("%T can't be handed over", open))
		return -1
	}
	i.conns = append(i.conns, conn)
	number, err := closeOnExec(conn, false)
	i.err = errors.Join(i.err, err)
	return number
}

// end closes them on exec again.
func (i *inheritance) end() {
	for _, conn := range i.conns {
		_, _ = closeOnExec(conn, true)
	}
}

func closeOnExec(conn syscall.Conn, on bool) (number int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	flags := 0
	if on {
		flags = unix.FD_CLOEXEC
	}
	controlErr := raw.Control(func(fd uintptr) {
		number = int(fd)
		_, err = unix.FcntlInt(fd, unix.F_SETFD, flags)
	})
	return number, errors.Join(controlErr, err)
}
