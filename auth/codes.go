package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// maxLimiters bounds the callers whose rate is remembered. Who is pushed out
// begins anew, which costs little: the codes outstanding are bounded anyway.
const maxLimiters = 10_000

// maxCode bounds what is looked up as a code.
const maxCode = 64

// codes are the one-time codes outstanding, under their hashes.
type codes struct {
	every time.Duration
	burst int
	max   int

	mu       sync.Mutex
	grants   map[[sha256.Size]byte]grant
	sweepAt  time.Time
	limiters *simplelru.LRU[[sha256.Size]byte, *rate.Limiter]
}

// grant is what a code stands for.
type grant struct {
	principal Principal
	until     time.Time
}

func newCodes(cfg Config) *codes {
	c := &codes{every: cfg.CodeEvery, burst: cfg.CodeBurst, max: cfg.MaxCodes, grants: make(map[[sha256.Size]byte]grant)}
	c.limiters, _ = simplelru.NewLRU[[sha256.Size]byte, *rate.Limiter](maxLimiters, nil) // The only error is a size of 0.
	return c
}

// NewCode makes a code that [Authority.Exchange] takes once, within [CodeLife]
// and within the life of p's token. A principal that has ended is
// KindUnauthenticated; too many codes are KindRateLimited with RetryAfter.
func (a *Authority) NewCode(p Principal) (code string, expiresAt time.Time, err error) {
	now := a.now()
	p, live := p.at(now)
	if !live {
		return "", time.Time{}, errEnded()
	}
	expiresAt = now.Add(CodeLife)
	if p.ExpiresAt.Before(expiresAt) {
		expiresAt = p.ExpiresAt
	}
	code = rand.Text() // 26 letters, a little more than 128 bits.
	if err := a.codes.add(code, grant{principal: p, until: expiresAt}, now); err != nil {
		return "", time.Time{}, err
	}
	return code, expiresAt, nil
}

// Exchange gives a token of the claims that code was made for. The token ends
// when the original would have, and its iat is the original's, so that it renews
// alike. Of several that try one code, one succeeds. A code that is unknown, used
// or expired, or whose original has ended, is KindUnauthenticated.
func (a *Authority) Exchange(code string) (token string, expiresAt time.Time, err error) {
	now := a.now()
	if len(code) > maxCode {
		code = "" // Not worth a hash; nothing is granted for it.
	}
	g, ok := a.codes.take(code)
	if !ok || !now.Before(g.until) {
		return "", time.Time{}, unauthenticated("the code is unknown, used or expired; get a new one")
	}
	p, live := a.stands(g.principal, now)
	if !live || !now.Before(p.ExpiresAt.Truncate(time.Second)) {
		return "", time.Time{}, errEnded()
	}
	iat := p.issuedAt
	if iat.IsZero() {
		iat = now
	}
	return a.sign(p.claims(), iat, p.ExpiresAt)
}

func (c *codes) add(code string, g grant, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait := c.reserveLocked(g.principal, now); wait > 0 {
		e := refuse(KindRateLimited, "more sign-in codes were asked for than %d at once and one each %s; ask again later", c.burst, c.every)
		e.RetryAfter = wait
		return e
	}
	if len(c.grants) >= c.max || !now.Before(c.sweepAt) {
		c.sweepLocked(now)
	}
	if len(c.grants) >= c.max {
		e := refuse(KindRateLimited, "%d sign-in codes are outstanding, which is the most there may be; ask again later", c.max)
		e.RetryAfter = CodeLife
		return e
	}
	c.grants[sha256.Sum256([]byte(code))] = g
	return nil
}

func (c *codes) take(code string) (grant, bool) {
	hash := sha256.Sum256([]byte(code))
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.grants[hash]
	delete(c.grants, hash)
	return g, ok
}

// reserveLocked takes one from the caller's rate, or gives the time until there
// is one to take.
func (c *codes) reserveLocked(p Principal, now time.Time) time.Duration {
	who := "session " + p.Session
	if p.Session == "" {
		who = "subject " + p.Subject
	}
	hash := sha256.Sum256([]byte(who)) // A subject may be long.
	limiter, ok := c.limiters.Get(hash)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(c.every), c.burst)
		c.limiters.Add(hash, limiter)
	}
	r := limiter.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

func (c *codes) sweepLocked(now time.Time) {
	for hash, g := range c.grants {
		if !now.Before(g.until) {
			delete(c.grants, hash)
		}
	}
	c.sweepAt = now.Add(CodeLife)
}
