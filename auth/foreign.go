package auth

import (
	"errors"
	"sync"

	"github.com/golang-jwt/jwt/v5"
)

// foreign is the key set of others, with a parser that knows which algorithms may be
// used with it. It is replaced as a whole.
type foreign struct {
	source string
	parser *jwt.Parser
	keys   keySource // nil without a JWKS
	once   sync.Once
}

// open opens a key set; an empty source is none.
func (a *Authority) open(source string) (*foreign, error) {
	cfg := a.cfg
	cfg.JWKS = source
	if source != "" && (cfg.Issuer == "" || cfg.Audience == "") {
		return nil, errors.New("a JWKS requires an issuer and an audience: set AFOOT_JWT_ISSUER and AFOOT_JWT_AUDIENCE")
	}
	methods := []string{jwt.SigningMethodHS256.Alg()}
	if source != "" {
		methods = append(methods, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg(), jwt.SigningMethodEdDSA.Alg())
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods),
		jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(a.now),
		jwt.WithIssuer(cfg.Issuer),
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	f := &foreign{source: source, parser: jwt.NewParser(options...)}
	if source == "" {
		return f, nil
	}
	var err error
	f.keys, err = openJWKS(cfg)
	return f, err
}

// begin lets the key set be refreshed in the background. Before that only its opener
// changes it.
func (f *foreign) begin() {
	if f.keys != nil {
		f.keys.begin()
	}
}

// close ends what changes the key set, also by who still has it in hand.
func (f *foreign) close() {
	f.once.Do(func() {
		if f.keys != nil {
			f.keys.close()
		}
	})
}

// SetJWKS replaces the key set, as [New] would open it: tokens of keys that the new
// one lacks end at once. One that can't be used, and a URL that does not answer with
// keys, is refused, and the old one stays. It may block for [Config].JWKSTimeout, and
// changes nothing if source is what it was; a file is watched anyway.
func (a *Authority) SetJWKS(source string) error {
	a.swap.Lock()
	defer a.swap.Unlock()
	old := a.foreign.Load()
	if old.source == source {
		return nil
	}
	next, err := a.open(source)
	if err != nil {
		return err
	}
	ring := &keyring{}
	if next.keys != nil {
		if ring = next.keys.keys(); len(ring.byID) == 0 {
			next.close()
			return errors.New("the JWKS gave no key, so the one before it stays")
		}
	}
	// Between the last refresh of the old one and the first of the new one: each would
	// end keys that the other set goes on with.
	old.close()
	if old.keys != nil {
		succeed(old.keys.keys(), ring, a.now())
	}
	next.begin()
	a.foreign.Store(next)
	return nil
}
