package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// supervisorPatience is how long the daemon waits for a supervisor to take a message.
const supervisorPatience = time.Second

// supervisor is told how the daemon is, if there is one that wants to know (systemd's
// Type=notify). Its methods don't fail: without one they do nothing.
type supervisor struct {
	log  *slog.Logger
	quit chan struct{}
	done chan struct{}
}

// newSupervisor begins to send signs of life if they are asked for; each is sent only
// if alive returns.
func newSupervisor(log *slog.Logger, alive func()) *supervisor {
	s := &supervisor{log: log, quit: make(chan struct{}), done: make(chan struct{})}
	every, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("no signs of life are sent", keyError, err)
	}
	go func() {
		defer close(s.done)
		if every > 0 {
			s.beat(every/2, alive)
		}
	}()
	return s
}

func (s *supervisor) beat(every time.Duration, alive func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
			alive()
			s.tell(systemd.SdNotifyWatchdog)
		}
	}
}

func (s *supervisor) ready(status string) { s.tell(systemd.SdNotifyReady, "STATUS="+status) }

func (s *supervisor) stopping() { s.tell(systemd.SdNotifyStopping, "STATUS=stopping tasks") }

// reloading says that a reload has begun; ready ends it.
func (s *supervisor) reloading() {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		s.tell(systemd.SdNotifyReloading, fmt.Sprintf("MONOTONIC_USEC=%d", time.Duration(now.Nano()).Microseconds()))
	}
}

func (s *supervisor) tell(lines ...string) {
	name := os.Getenv("NOTIFY_SOCKET") //nolint:forbidigo // the supervisor's, and no configuration
	if name == "" {
		return
	}
	if err := notify(name, strings.Join(lines, "\n")); err != nil {
		s.log.Debug("the supervisor can't be told", keyError, err)
	}
}

// notify is systemd.SdNotify with a bound: a supervisor that reads nothing must not hold
// the daemon.
func notify(name, text string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetWriteDeadline(time.Now().Add(supervisorPatience)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return err
}

func (s *supervisor) close() {
	close(s.quit)
	<-s.done
}

// fromSupervisor are variables that a supervisor sets for the daemon alone.
func fromSupervisor(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	switch name {
	case "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "MAINPID":
		return true
	}
	return false
}
