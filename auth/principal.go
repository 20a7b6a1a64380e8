package auth

import "time"

// Principal is who calls, as proven by a token. It is a value; copies are
// independent. One that wasn't made by an [Authority] proves nothing: no code
// or token is given for it.
type Principal struct {
	// Session is the claim sid; empty for a non-agent caller.
	Session string
	// Subject is the claim sub; it may be empty.
	Subject string
	// Agent is the claim agent, which pins the acting agent; empty if none.
	Agent  string
	Scopes Scopes
	// ExpiresAt is when the token stops being good, as far as it was known at its proof:
	// its exp, or the end of the key that proved it. See [Principal.Ended].
	ExpiresAt time.Time

	// issuedAt is the claim iat; zero if the token has none that makes sense.
	issuedAt time.Time
	// notAfter is the claim exp.
	notAfter time.Time
	key      *key
	// by is who made it.
	by *Authority
}

// Require refuses with KindForbidden unless the scopes cover want.
func (p Principal) Require(want Scopes) error {
	if p.Scopes.Has(want) {
		return nil
	}
	has := p.Scopes.String()
	if has == "" {
		has = "none"
	}
	e := refuse(KindForbidden, "this needs the scope %s; the token's scopes: %s", want, has)
	e.scope = want
	return e
}

// claims are the claims that a token made from this principal carries.
func (p Principal) claims() Claims {
	return Claims{Session: p.Session, Subject: p.Subject, Agent: p.Agent, Scopes: p.Scopes}
}

// at gives the principal as it stands at now, or false if its token or its key
// has ended.
func (p Principal) at(now time.Time) (Principal, bool) {
	if p.key == nil || !now.Before(p.notAfter) {
		return Principal{}, false
	}
	p.ExpiresAt = p.notAfter
	if end, ends := p.key.end(); ends {
		if !now.Before(end) {
			return Principal{}, false
		}
		if end.Before(p.ExpiresAt) {
			p.ExpiresAt = end
		}
	}
	return p, true
}
