package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Bounds of an answer, of which nothing is kept.
const (
	maxAnswer       = 64 << 10
	maxAnswerHeader = 64 << 10
	maxReason       = 200
)

// newClient makes the one way out: no proxy, no redirect, no connection twice, and each
// connection checked.
func (p *Poster) newClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  nil, // what the environment says would lead around the check
			DialContext:            p.dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.cfg.RootCAs},
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxAnswerHeader,
		},
	}
}

// dial connects to what a URL names if its address may be posted to. The check is made
// of the address that is really connected to.
func (p *Poster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	t, err := newTarget(host, port)
	if err != nil {
		return nil, &forbiddenError{reason: err.Error()}
	}
	d := net.Dialer{
		Resolver: p.cfg.Resolver,
		Control: func(network, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil || network != "tcp4" && network != "tcp6" || !p.allowed.Load().permit(t, to.Addr()) {
				return &forbiddenError{reason: fmt.Sprintf("the address %s may not be posted to", address)}
			}
			return nil
		},
	}
	return d.DialContext(ctx, network, address)
}

// fly makes one post.
func (p *Poster) fly(f flight) {
	err := p.send(f)
	cut := errors.Is(f.ctx.Err(), context.Canceled)
	p.mu.Lock()
	outcome := p.landedLocked(f.post, err, cut)
	p.mu.Unlock()
	if outcome != "" && p.cfg.Posted != nil {
		p.cfg.Posted(outcome)
	}
}

// send gives nil once the receiver has answered 2xx.
func (p *Poster) send(f flight) error {
	u, err := url.Parse(f.address)
	if err != nil {
		return err
	}
	if t, err := targetOf(u); err != nil || !p.allowed.Load().list(t) {
		return &forbiddenError{reason: "the host is not in AFOOT_WEBHOOK_HOSTS any more"}
	}
	r, err := http.NewRequestWithContext(f.ctx, http.MethodPost, f.address, bytes.NewReader(f.body))
	if err != nil {
		return err
	}
	now := time.Now()
	signature, err := f.post.hook.key.Sign(f.id, now, f.body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "afoot")
	r.Header.Set(standardwebhooks.HeaderWebhookID, f.id)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // the status says it all
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return &statusError{status: strconv.Itoa(answer.StatusCode)}
	}
	return nil
}

// landedLocked records how a post ended. Cut says that it was broken off here.
func (p *Poster) landedLocked(o *post, err error, cut bool) Outcome {
	h := o.hook
	o.cancel()
	o.cancel, h.flying = nil, nil
	p.flying--
	session := h.row.Session
	if p.busy[session]--; p.busy[session] == 0 {
		delete(p.busy, session)
	}
	waiting := p.crowded[session]
	delete(p.crowded, session)
	for _, other := range waiting {
		p.planLocked(other)
	}
	p.rouse() // for whom all places were taken
	outcome := outcomeOf(err)
	switch {
	case err == nil:
		h.lastError = ""
		p.log.Debug("notice posted", keyWebhook, h.row.ID, keyTask, o.notice.Key, "attempt", o.attempts)
		if slices.Contains(h.posts, o) { // it is still wanted
			p.detachLocked(o)
		}
	case cut:
		o.attempts--
		outcome = ""
	default:
		h.lastError = reasonOf(err)
		o.due = time.Now().Add(backoff(o.attempts))
		say := p.log.Debug
		if o.attempts == 1 {
			say = p.log.Info
		}
		say("notice not posted", keyWebhook, h.row.ID, keyTask, o.notice.Key, "attempt", o.attempts, keyError, h.lastError)
	}
	p.planLocked(h)
	return outcome
}

// backoff is the time to the next attempt.
func backoff(attempts int) time.Duration {
	wait := lastRetry
	if attempts < 16 {
		wait = min(wait, firstRetry<<(attempts-1))
	}
	return wait - rand.N(wait/2) //nolint:gosec // it spreads load and hides nothing
}

func outcomeOf(err error) Outcome {
	var (
		status    *statusError
		forbidden *forbiddenError
	)
	switch {
	case err == nil:
		return Delivered
	case errors.As(err, &status):
		return Refused
	case errors.As(err, &forbidden):
		return Forbidden
	}
	return Failed
}

// reasonOf words why a post failed, without the URL, for its owner.
func reasonOf(err error) string {
	if wrapped, is := errors.AsType[*url.Error](err); is {
		err = wrapped.Err
	}
	if forbidden, is := errors.AsType[*forbiddenError](err); is {
		return forbidden.reason
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "not answered in time"
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, err.Error())
	return text[:min(len(text), maxReason)]
}
