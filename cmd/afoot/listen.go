package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// listen opens the door. A socket is made with mode 0600; one that a daemon left
// behind is replaced, one that somebody serves is not.
func listen(ctx context.Context, addr Address) (net.Listener, error) {
	if addr.Network == "unix" {
		if err := removeStaleSocket(ctx, addr.Address); err != nil {
			return nil, err
		}
		// The socket must never be open to others, not even between two calls. No task
		// runs yet, and what other goroutines make meanwhile are files of mode 0600.
		before := syscall.Umask(0o177)
		defer syscall.Umask(before)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, addr.Network, addr.Address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s_ADDR=%s: another program listens there", envPrefix, addr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s_ADDR=%s: %w", envPrefix, addr, err)
	}
	return listener, nil
}

func removeStaleSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s_ADDR=unix:%s: %w", envPrefix, path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s_ADDR=unix:%s: something that is not a socket is there", envPrefix, path)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("%s_ADDR=unix:%s: another program listens there", envPrefix, path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s_ADDR=unix:%s: %w", envPrefix, path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("%s_ADDR=unix:%s: %w", envPrefix, path, err)
	}
	return nil
}

// boundAddr is the address with the port that was really bound.
func (d *daemon) boundAddr() string {
	if d.cfg().Addr.Network == "unix" {
		return d.cfg().Addr.String()
	}
	return d.listener.Addr().String()
}

// url is where a program on this machine finds the daemon.
func (d *daemon) url() string {
	scheme := "http://"
	if d.cfg().TLSCert != "" {
		scheme = "https://"
	}
	tcp, ok := d.listener.Addr().(*net.TCPAddr)
	if !ok {
		return scheme + "localhost"
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1" // a listener for all of IPv6 takes IPv4 too
		if strings.HasPrefix(d.cfg().Addr.Address, "[") {
			host = "::1"
		}
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
