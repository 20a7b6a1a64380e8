package auth

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// keySource is where the keys of some algorithms come from.
type keySource interface {
	// keys gives what is known now; it is replaced as a whole, never changed.
	keys() *keyring
	// poll picks up changes of local files, at most once a second. It is cheap.
	poll(now time.Time)
	// missed looks for newer keys because a token failed with err; it returns when
	// keys may have changed, or when there is no use in waiting.
	missed(ctx context.Context, now time.Time, err error)
	// begin starts what runs in the background, once and not after close.
	begin()
	// close ends what runs in the background and waits for it. The keys stay as they
	// are from then on.
	close()
}

// keyring is one consistent set of keys.
type keyring struct {
	// candidates gives the keys that a token names, or all if it names none; errNoKey
	// if there is none.
	candidates func(t *jwt.Token) ([]any, error)
	byID       map[string]*key
}

// errNoKey says that no known key could have signed a token. It is never shown.
var errNoKey = errors.New("no such key")

// match gives the live key that signed t. errNoKey if no key was even a
// candidate, or none of several unnamed ones fits.
func (r *keyring) match(t *jwt.Token, now time.Time) (*key, error) {
	candidates, err := r.candidates(t)
	if err != nil {
		return nil, err
	}
	text := t.Raw[:strings.LastIndexByte(t.Raw, '.')]
	for _, material := range candidates {
		if t.Method.Verify(text, t.Signature, material) != nil {
			continue
		}
		if k := r.byID[identify(material)]; k != nil && k.live(now) {
			return k, nil
		}
	}
	if _, named := t.Header["kid"]; named {
		return nil, jwt.ErrTokenSignatureInvalid
	}
	return nil, errNoKey
}

// succeed makes the keys that both rings hold the same objects and ends those
// that only the old one holds. The caller then publishes next.
func succeed(old, next *keyring, now time.Time) {
	for id, k := range old.byID {
		if _, stays := next.byID[id]; stays {
			next.byID[id] = k
		} else {
			k.endAt(now)
		}
	}
}
