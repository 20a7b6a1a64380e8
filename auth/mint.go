package auth

import (
	"crypto/rand"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// minted are the claims of a token of our own making.
type minted struct {
	jwt.RegisteredClaims

	Session string `json:"sid,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Scope   string `json:"scope,omitempty"`
}

// Mint makes a token for claims, signed with the daemon's current secret. It is
// good for ttl and for less than a second more, since exp is in whole seconds;
// expiresAt is exactly that exp. Claims that no token may carry and a ttl that
// isn't positive are KindInvalid.
func (a *Authority) Mint(claims Claims, ttl time.Duration) (token string, expiresAt time.Time, err error) {
	if ttl <= 0 {
		return "", time.Time{}, refuse(KindInvalid, "a token must live for a positive time, not %s", ttl)
	}
	now := a.now()
	exp := now.Add(ttl)
	if whole := exp.Truncate(time.Second); whole.Before(exp) {
		exp = whole.Add(time.Second)
	}
	return a.sign(claims, now, exp)
}

// Renew makes a fresh token of the same claims for a live principal. It lives as
// long as the presented token's whole life was (exp - iat), at most
// [Config].MaxTTL; a token without iat gives its remaining life. A principal
// that has ended is KindUnauthenticated.
func (a *Authority) Renew(p Principal) (token string, expiresAt time.Time, err error) {
	now := a.now()
	p, live := a.stands(p, now)
	if !live {
		return "", time.Time{}, errEnded()
	}
	start := now.Truncate(time.Second)
	life := p.notAfter.Sub(p.issuedAt)
	if p.issuedAt.IsZero() {
		life = p.notAfter.Sub(start)
	}
	life = min(life, a.cfg.MaxTTL).Truncate(time.Second)
	return a.sign(p.claims(), now, start.Add(max(life, time.Second)))
}

// stands is [Principal.at] for who is about to get a token: a secret that was just rotated
// away must not live on in one of the new secret.
func (a *Authority) stands(p Principal, now time.Time) (Principal, bool) {
	a.secrets.refresh(now)
	a.poll(now)
	return p.at(now)
}

// sign makes the token; iat and exp are cut to whole seconds.
func (a *Authority) sign(claims Claims, iat, exp time.Time) (string, time.Time, error) {
	if err := claims.validate(); err != nil {
		return "", time.Time{}, err
	}
	exp = exp.Truncate(time.Second)
	audience := a.cfg.Audience
	if audience == "" {
		audience = defaultAudience
	}
	body := minted{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    a.cfg.Issuer,
			Audience:  jwt.ClaimStrings{audience},
			Subject:   claims.Subject,
			IssuedAt:  jwt.NewNumericDate(iat),
			ExpiresAt: jwt.NewNumericDate(exp),
			ID:        rand.Text(), // Two tokens of one second differ.
		},
		Session: claims.Session,
		Agent:   claims.Agent,
		Scope:   claims.Scopes.String(),
	}
	a.secrets.refresh(a.now()) // A token must not be born of a secret that was just rotated away.
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, body).SignedString(a.secrets.current().material)
	if err != nil {
		return "", time.Time{}, err
	}
	if len(token) > MaxTokenBytes {
		return "", time.Time{}, refuse(KindInvalid, "the token would be larger than %d bytes; use a shorter subject", MaxTokenBytes)
	}
	return token, exp, nil
}

func errEnded() *Error {
	return unauthenticated("the token has expired or its key was taken away; get a new one")
}
