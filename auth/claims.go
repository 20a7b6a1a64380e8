package auth

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
)

// maxName bounds sid and agent, in bytes.
const maxName = 128

// defaultAudience is Afoot's name among the audiences of a token.
const defaultAudience = "afoot"

// Claims are what a token says about its bearer.
type Claims struct {
	// Session is 1 to 128 printable ASCII characters, or empty for a non-agent caller.
	Session string
	Subject string
	// Agent pins the acting agent; it needs a session.
	Agent  string
	Scopes Scopes
}

// validate refuses claims that no token may carry.
func (c Claims) validate() error {
	if c.Session != "" && !printable(c.Session) {
		return refuse(KindInvalid, "a session must be 1 to %d printable ASCII characters", maxName)
	}
	if c.Agent == "" {
		return nil
	}
	if !printable(c.Agent) {
		return refuse(KindInvalid, "an agent must be 1 to %d printable ASCII characters", maxName)
	}
	if c.Session == "" {
		return refuse(KindInvalid, "an agent needs a session")
	}
	return nil
}

func printable(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// received are the claims of a presented token, each kept raw until it is asked
// for, so that absent, null and wrong type stay three things. Names match
// exactly and must not repeat. It implements [jwt.Claims] for the validator.
type received map[string]jsontext.Value

// UnmarshalJSON refuses everything but one object with unique names.
func (c *received) UnmarshalJSON(data []byte) error {
	var m map[string]jsontext.Value
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	if m == nil {
		return errors.New("the claims are not an object")
	}
	*c = m
	return nil
}

// GetExpirationTime implements [jwt.Claims].
func (c received) GetExpirationTime() (*jwt.NumericDate, error) { return c.date("exp") }

// GetNotBefore implements [jwt.Claims].
func (c received) GetNotBefore() (*jwt.NumericDate, error) { return c.date("nbf") }

// GetIssuedAt implements [jwt.Claims].
func (c received) GetIssuedAt() (*jwt.NumericDate, error) { return c.date("iat") }

// GetIssuer implements [jwt.Claims].
func (c received) GetIssuer() (string, error) {
	s, _, err := c.text("iss")
	return s, err
}

// GetSubject implements [jwt.Claims].
func (c received) GetSubject() (string, error) {
	s, _, err := c.text("sub")
	return s, err
}

// GetAudience implements [jwt.Claims]. A claim that is there but empty gives one
// empty audience, which no server is.
func (c received) GetAudience() (jwt.ClaimStrings, error) {
	raw, ok := c["aud"]
	if !ok {
		return nil, nil
	}
	var elements []jsontext.Value
	if raw.Kind() != '[' {
		elements = append(elements, raw)
	} else if json.Unmarshal(raw, &elements) != nil {
		return nil, wrongType("aud", "a string or an array of strings")
	}
	var list jwt.ClaimStrings
	for _, e := range elements {
		var s string
		if e.Kind() != '"' || json.Unmarshal(e, &s) != nil {
			return nil, wrongType("aud", "a string or an array of strings")
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return jwt.ClaimStrings{""}, nil
	}
	return list, nil
}

// text gives a claim that must be a string if it is there.
func (c received) text(name string) (value string, present bool, err error) {
	raw, ok := c[name]
	if !ok {
		return "", false, nil
	}
	if raw.Kind() != '"' || json.Unmarshal(raw, &value) != nil {
		return "", true, wrongType(name, "a string")
	}
	return value, true, nil
}

// date gives a claim that must be a number of seconds since the epoch if it is
// there. Fractions count, to the millisecond.
func (c received) date(name string) (*jwt.NumericDate, error) {
	raw, ok := c[name]
	if !ok {
		return nil, nil
	}
	var seconds float64
	if raw.Kind() != '0' || json.Unmarshal(raw, &seconds) != nil {
		return nil, wrongType(name, "a number")
	}
	const year9999 = 253402300799
	if seconds < -year9999 || seconds > year9999 {
		return nil, unauthenticated("the token's claim %s is not a time in seconds", name)
	}
	whole := int64(seconds)
	milli := int64((seconds - float64(whole)) * 1e3)
	return &jwt.NumericDate{Time: time.Unix(whole, milli*1e6)}, nil
}

// principal is the last step of verification: the claims that are Afoot's own.
func (c received) principal(k *key) (Principal, error) {
	session, hasSession, err := c.text("sid")
	if err != nil {
		return Principal{}, err
	}
	if hasSession && !printable(session) {
		return Principal{}, unauthenticated("the token's claim sid must be 1 to %d printable ASCII characters", maxName)
	}
	agent, hasAgent, err := c.text("agent")
	if err != nil {
		return Principal{}, err
	}
	if hasAgent && !printable(agent) {
		return Principal{}, unauthenticated("the token's claim agent must be 1 to %d printable ASCII characters", maxName)
	}
	if hasAgent && !hasSession {
		return Principal{}, unauthenticated("the token has the claim agent without the claim sid")
	}
	subject, _, err := c.text("sub")
	if err != nil {
		return Principal{}, err
	}
	scope, _, err := c.text("scope")
	if err != nil {
		return Principal{}, err
	}
	scopes, _ := ParseScopes(scope) // Unknown scopes are somebody else's.
	p := Principal{Session: session, Subject: subject, Agent: agent, Scopes: scopes, key: k}
	p.issuedAt, p.notAfter, err = c.times()
	return p, err
}

// times gives exp, which the validator has required, and iat, which only has to
// make sense to be of use.
func (c received) times() (issuedAt, notAfter time.Time, err error) {
	exp, err := c.date("exp")
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	iat, err := c.date("iat")
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	if iat != nil && iat.Before(exp.Time) {
		issuedAt = iat.Time
	}
	return issuedAt, exp.Time, nil
}

func wrongType(claim, want string) error {
	return unauthenticated("the token's claim %s is not %s", claim, want)
}
