package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Owner is whose notices are posted: an agent of a session.
type Owner struct{ Session, Agent string }

// Hook is a webhook as its owner may see it.
type Hook struct {
	ID, URL string
	Created time.Time
	// Pending counts notices that are not answered 2xx yet. Waiting says that the
	// budget is used up and one of them waits for it.
	Pending int
	Waiting bool
	// LastError is why the last post failed; empty when it did not.
	LastError string
}

// Bounds of a webhook.
const (
	maxURL       = 2048
	secretPrefix = "whsec_"
	leastSecret  = 24
	mostSecret   = 64
)

// Add adds a webhook. What pending gives, asked when the webhook hears of new notices
// already, is posted to it too. The error is [*InvalidError], [ErrTooMany], [ErrClosed],
// or why it can't be kept: then there is none.
func (p *Poster) Add(ctx context.Context, owner Owner, address, secret string, pending func() []Pending) (Hook, error) {
	if err := checkURL(address, *p.allowed.Load()); err != nil {
		return Hook{}, err
	}
	key, err := parseSecret(secret)
	if err != nil {
		return Hook{}, err
	}
	h := &hook{
		row: HookRow{
			ID: "webhook-" + strings.ToLower(rand.Text()), Session: owner.Session, Agent: owner.Agent,
			URL: address, Secret: secret, Created: time.Now(),
		},
		key: key, joining: make(map[string]joined), place: -1,
	}
	if err := p.insert(owner, h); err != nil {
		return Hook{}, err
	}
	if err := p.keep(ctx, h); err != nil {
		return Hook{}, err
	}
	var known []Pending
	if pending != nil {
		known = pending()
	}
	view := p.join(h, known)
	if len(known) > 0 { // no restart would find them anew
		if err := p.keep(ctx, h); err != nil {
			return Hook{}, err
		}
	}
	return view, nil
}

// keep waits until a webhook is kept with what it has; one that can't be is dropped.
func (p *Poster) keep(ctx context.Context, h *hook) error {
	err := p.journal.Sync(ctx)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dropLocked(h)
	}
	return err
}

func (p *Poster) join(h *hook, known []Pending) Hook {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joinLocked(h, known)
	return h.viewLocked(p.limits.Budget)
}

func (p *Poster) insert(owner Owner, h *hook) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return ErrClosed
	}
	acc := p.accounts[owner]
	if acc == nil {
		acc = p.newAccountLocked(owner)
	}
	if len(acc.hooks) >= p.limits.MaxPerOwner {
		return ErrTooMany // so the account has some
	}
	p.serial++
	h.row.Seq = p.serial
	p.adoptLocked(acc, h)
	p.journal.PutHook(h.row)
	return nil
}

// List gives the webhooks of an owner in the order of their making.
func (p *Poster) List(owner Owner) []Hook {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Hook
	if acc := p.accounts[owner]; acc != nil {
		for _, h := range acc.hooks {
			all = append(all, h.viewLocked(p.limits.Budget))
		}
	}
	return all
}

// Has reports whether an owner has webhooks.
func (p *Poster) Has(owner Owner) bool {
	if p.hooks.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accounts[owner] != nil
}

// Remove removes a webhook with what was still to be posted to it. The error is
// [ErrUnknown], or why that can't be kept: then it may be back after the next start.
func (p *Poster) Remove(ctx context.Context, owner Owner, id string) error {
	if !p.remove(owner, id) {
		return ErrUnknown
	}
	return p.journal.Sync(ctx)
}

func (p *Poster) remove(owner Owner, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	acc := p.accounts[owner]
	if acc == nil {
		return false
	}
	i := slices.IndexFunc(acc.hooks, func(h *hook) bool { return h.row.ID == id })
	if i < 0 {
		return false
	}
	p.dropLocked(acc.hooks[i])
	return true
}

// parseSecret makes a signer of a secret.
func parseSecret(secret string) (*standardwebhooks.Webhook, error) {
	text, found := strings.CutPrefix(secret, secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || len(raw) < leastSecret || len(raw) > mostSecret {
		return nil, &InvalidError{Member: "secret", Reason: "must be whsec_ and 24 to 64 bytes in base64"}
	}
	return standardwebhooks.NewWebhookRaw(raw)
}

// checkURL says why nothing may be posted to a URL.
func checkURL(address string, allowed hosts) error {
	bad := func(reason string) error { return &InvalidError{Member: "url", Reason: reason} }
	if len(address) > maxURL {
		return bad("may have at most 2048 bytes")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return bad("is not well-formed")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("must be http or https")
	case u.User != nil:
		return bad("must not have a user or password")
	case u.Fragment != "" || strings.Contains(address, "#"):
		return bad("must not have a fragment")
	case u.Opaque != "" || u.Host == "":
		return bad("has no host")
	}
	t, err := targetOf(u)
	if err != nil {
		return bad("has no valid host: " + err.Error())
	}
	if !allowed.list(t) {
		return bad("names a host that may not be posted to; AFOOT_WEBHOOK_HOSTS lists those that may")
	}
	return nil
}

// targetOf gives where a URL leads.
func targetOf(u *url.URL) (target, error) {
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return target{}, errors.New("it has a colon and no port")
		}
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return newTarget(u.Hostname(), port)
}
