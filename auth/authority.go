package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Authority verifies and makes tokens. All methods are safe for concurrent use.
// Refusals are of type [*Error].
type Authority struct {
	cfg     Config
	now     func() time.Time
	secrets *secrets
	foreign atomic.Pointer[foreign]
	seen    *remembered
	codes   *codes
	vigils  vigils
	// swap lets one SetJWKS wait for another.
	swap sync.Mutex
}

// New loads the keys. It refuses a secret file that [LoadSecret] refuses, a JWKS
// without issuer and audience, and a JWKS file that can't be used; each error is
// a sentence that names what to change. A JWKS URL that doesn't answer is logged
// and tried again in the background: meanwhile only the daemon's own tokens are
// good. New may block for [Config].JWKSTimeout. The caller closes the authority.
func New(cfg Config) (*Authority, error) {
	cfg = cfg.withDefaults()
	a := &Authority{
		cfg:   cfg,
		now:   cfg.Now,
		seen:  newRemembered(cfg.RememberTokens, cfg.RememberBytes),
		codes: newCodes(cfg),
	}
	var err error
	if a.secrets, err = newSecrets(cfg); err != nil {
		return nil, err
	}
	next, err := a.open(cfg.JWKS)
	if err != nil {
		return nil, err
	}
	next.begin()
	a.foreign.Store(next)
	return a, nil
}

// Close ends the background refresh of a JWKS URL and waits for it. It is
// idempotent. A closed authority still verifies with the keys that it has.
func (a *Authority) Close() error {
	a.foreign.Load().close()
	return nil
}

// Authenticate proves who sent a request, by its one Authorization header with
// the Bearer scheme and by nothing else. It may block as long as r's context
// lives while a JWKS URL is asked for an unknown key, but no longer than
// [Config].JWKSTimeout.
func (a *Authority) Authenticate(r *http.Request) (Principal, error) {
	token, err := bearer(r.Header)
	if err != nil {
		return Principal{}, err
	}
	return a.verify(r.Context(), token)
}

// Verify is Authenticate for a bare token.
func (a *Authority) Verify(token string) (Principal, error) {
	return a.verify(context.Background(), token)
}

func (a *Authority) verify(ctx context.Context, token string) (Principal, error) {
	if len(token) > MaxTokenBytes {
		return Principal{}, unauthenticated("the token is larger than %d bytes", MaxTokenBytes)
	}
	now := a.now()
	foreign := a.poll(now)
	if p, ok := a.seen.get(token, now); ok {
		return p, nil
	}
	p, err := a.prove(ctx, token, foreign)
	if err != nil {
		return Principal{}, err
	}
	p, live := p.at(now)
	if !live { // The key went away meanwhile.
		return Principal{}, errEnded()
	}
	a.seen.put(token, p)
	return p, nil
}

// poll picks up changes of local files, and gives the key set of others.
func (a *Authority) poll(now time.Time) *foreign {
	a.secrets.poll(now)
	foreign := a.foreign.Load()
	if foreign.keys != nil {
		foreign.keys.poll(now)
	}
	return foreign
}

// prove does the whole work on a token that isn't remembered.
func (a *Authority) prove(ctx context.Context, token string, foreign *foreign) (Principal, error) {
	if !wellFormed(token) {
		return Principal{}, unauthenticated("the token is not a signed JWT")
	}
	var claims received
	var proof *key
	_, err := foreign.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		k, err := a.find(ctx, t, foreign)
		if err != nil {
			return nil, err
		}
		proof = k
		return k.material, nil
	})
	if err != nil {
		return Principal{}, explain(err, claims)
	}
	if a.cfg.Audience == "" {
		if audience, err := claims.GetAudience(); err != nil {
			return Principal{}, err
		} else if len(audience) > 0 && !slices.Contains(audience, defaultAudience) {
			return Principal{}, explain(jwt.ErrTokenInvalidAudience, claims)
		}
	}
	p, err := claims.principal(proof)
	p.by = a
	return p, err
}

// find gives the key that signed t, out of the source that t's algorithm is
// bound to. A miss makes that source look for newer keys, once.
func (a *Authority) find(ctx context.Context, t *jwt.Token, foreign *foreign) (*key, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, unauthenticated("the token's header demands extensions (crit) that are not known here")
	}
	var source keySource = a.secrets
	if t.Method != jwt.SigningMethodHS256 {
		source = foreign.keys // Not nil: without one, only HS256 gets past the list of methods.
	}
	before := source.keys()
	k, err := before.match(t, a.now())
	if err == nil {
		return k, nil
	}
	source.missed(ctx, a.now(), err)
	if after := source.keys(); after != before {
		k, err = after.match(t, a.now())
	}
	switch {
	case errors.Is(err, errNoKey):
		return nil, unauthenticated("the token was signed with a key that is not known here")
	case err != nil:
		return nil, unauthenticated("the token's signature is not good")
	}
	return k, nil
}

// explain turns what the parser found into one sentence. Details of the parser's
// errors are dropped, since they quote the token.
func explain(err error, claims received) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return unauthenticated("the token is not a well-formed JWT")
	case errors.Is(err, jwt.ErrTokenUnverifiable), errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return unauthenticated("the token's algorithm is not accepted here")
	case claims["exp"] == nil:
		return unauthenticated("the token has no claim exp")
	case errors.Is(err, jwt.ErrTokenExpired):
		return unauthenticated("the token has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return unauthenticated("the token is not valid yet")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return unauthenticated("the token is meant for another audience")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return unauthenticated("the token comes from another issuer")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return unauthenticated("the token lacks the issuer or audience that is required here")
	default:
		return unauthenticated("the token's claims are not good")
	}
}
