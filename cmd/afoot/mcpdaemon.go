package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"afoot/auth"
)

// Bounds of a private daemon.
const (
	privateStart = 20 * time.Second
	privateSlack = 10 * time.Second
)

// privateDaemon is a daemon for one bridge: on a socket that nobody else finds, and it
// keeps nothing. It takes the directory with it, also if the bridge has died.
type privateDaemon struct {
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
	bound  time.Duration
}

// startPrivate starts one. The goroutine that calls it has to outlive the daemon, on one
// thread: with that the daemon ends too.
func (a *app) startPrivate(ctx context.Context) (_ *privateDaemon, err error) {
	p := &privateDaemon{exited: make(chan struct{}), bound: 2*a.cfg.teardown() + a.cfg.patience() + privateSlack}
	if p.dir, err = os.MkdirTemp("", scratchPrefix); err != nil {
		return nil, fmt.Errorf("a private daemon: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(p.dir)
		}
	}()
	if _, err := auth.EnsureSecret(p.secret()); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("a private daemon: %w", err)
	}
	p.cmd = exec.Command(self, "serve", "--"+scratchFlag, p.dir) //nolint:noctx // it is this program, and its end is asked for by a signal
	p.cmd.Env = a.privateEnv(p)
	p.cmd.Stderr, p.cmd.SysProcAttr = a.stderr, bindToParent()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("a private daemon: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("a private daemon: %w", err)
	}
	ready := make(chan struct{})
	go p.attend(out, ready)
	select {
	case <-ready:
		return p, nil
	case <-p.exited:
		return nil, errors.New("no daemon runs, and a private one does not start")
	case <-time.After(privateStart):
		err = errors.New("no daemon runs, and a private one is not ready in time")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return nil, errors.Join(err, p.stop())
}

// attend waits until it is ready, and for its end.
func (p *privateDaemon) attend(out io.Reader, ready chan<- struct{}) {
	defer close(p.exited)
	if line, _ := bufio.NewReader(out).ReadString('\n'); strings.HasPrefix(line, "afoot listens") {
		close(ready)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = p.cmd.Wait()
}

func (p *privateDaemon) secret() string { return filepath.Join(p.dir, "secret") }
func (p *privateDaemon) socket() string { return filepath.Join(p.dir, "socket") }

// privateEnv is this command's environment, without what says how to be reached and
// who may come. Commands that name no directory run where this one does.
func (a *app) privateEnv(p *privateDaemon) []string {
	env := slices.Clone(a.cfg.Environ)
	for name, value := range a.cfg.fromFile {
		env = append(env, name+"="+value)
	}
	env = slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		switch strings.TrimPrefix(name, envPrefix+"_") {
		case "ENV_FILE", "JWKS", "JWT_ISSUER", "JWT_AUDIENCE", "TLS_CERT", "TLS_KEY", "HOSTS", "ORIGINS", "PPROF_ADDR",
			"TOKEN", "STATE_DIR", "ADDR", "JWT_SECRET_FILE":
			return true
		}
		return fromSupervisor(entry)
	})
	if here, err := os.Getwd(); err == nil && !slices.ContainsFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, envPrefix+"_WORKDIR=")
	}) {
		env = append(env, envPrefix+"_WORKDIR="+here) // where the client is
	}
	return append(env,
		envPrefix+"_STATE_DIR="+memoryState,
		envPrefix+"_ADDR=unix:"+p.socket(),
		envPrefix+"_JWT_SECRET_FILE="+p.secret())
}

// connectPrivate talks to it.
func (a *app) connectPrivate(p *privateDaemon) (*remote, error) {
	authority, err := openKeys(auth.Config{SecretFile: p.secret()})
	if err != nil {
		return nil, err
	}
	transport := newTransport()
	transport.Proxy, transport.DialContext = nil, dialSocket(p.socket())
	return a.dial(transport, "http://localhost", true, ownToken(authority, a.sessionName()), authority.Close)
}

// stop ends it as an operator would, and in the end by force.
func (p *privateDaemon) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case <-p.exited:
	case <-time.After(p.bound):
		_ = p.cmd.Process.Kill()
		<-p.exited
		err = errors.New("the private daemon did not end by itself")
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
