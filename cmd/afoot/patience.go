package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// patienceTime is how long a command that stays connected waits for a daemon that
// went away.
const patienceTime = 30 * time.Second

// patience watches the requests of one command. A command that follows something
// tries again by itself when its stream is lost; patience tells the person, and
// ends the trying when no daemon has answered for a while.
type patience struct {
	base http.RoundTripper

	mu    sync.Mutex
	since time.Time // of the first failure in a row; zero while all is well
	tell  func(note string)
	end   context.CancelCauseFunc
}

// RoundTrip passes the request on and keeps count.
func (p *patience) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := p.base.RoundTrip(req)
	if err == nil && wantsTLS(res) {
		err = errors.Join(errWantsTLS, res.Body.Close())
		res = nil
	}
	if req.Context().Err() != nil {
		return res, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.since = time.Time{}
	case p.end != nil && wrongScheme(err) != "":
		p.end(err)
	case p.since.IsZero():
		p.since = time.Now()
		if p.tell != nil {
			p.tell("the daemon does not answer; trying again")
		}
	case p.end != nil && time.Since(p.since) > patienceTime:
		p.end(err)
	}
	return res, err
}

// patient gives a context that ends when the daemon stayed away for too long.
func (r *remote) patient(ctx context.Context, tell func(note string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.patience.mu.Lock()
	r.patience.tell, r.patience.end = tell, cancel
	r.patience.mu.Unlock()
	return ctx, func() { cancel(context.Canceled) }
}

// cause prefers the reason for which a context ended to err.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && !errors.Is(why, context.Canceled) {
		return noDaemon(why)
	}
	return err
}

// unreachable reports whether err says that no daemon answers.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// errWantsTLS is a server that was called without TLS and wants it.
var errWantsTLS = errors.New("it speaks TLS")

// wantsTLS knows the answer of Go's server to a plain request, which is of HTTP/1.0.
func wantsTLS(res *http.Response) bool {
	return res.StatusCode == http.StatusBadRequest && res.Proto == "HTTP/1.0" && res.TLS == nil
}

// wrongScheme gives the scheme that an address should have had; "" if it was no such error.
func wrongScheme(err error) string {
	record, broken := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, errWantsTLS):
		return "https://"
	case errors.Is(err, http.ErrSchemeMismatch), broken && string(record.RecordHeader[:]) == "HTTP/":
		return "http://"
	}
	return ""
}

// brokenOff reports whether err says that a daemon ended before it answered.
func brokenOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
}

// noDaemon words a failed dial, and a connection that broke off.
func noDaemon(err error) error {
	scheme := wrongScheme(err)
	switch {
	case scheme != "":
		return usageErrorf("a server is there, but not by this scheme: name the daemon by %s… in --addr", scheme)
	case unreachable(err):
		return exitError{code: exitNoDaemon, err: fmt.Errorf("no daemon answers: %w; `afoot serve` starts one", err)}
	case brokenOff(err):
		return exitError{code: exitNoDaemon, err: fmt.Errorf("the daemon ended before it answered: %w", err)}
	default:
		return err
	}
}
