package auth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// secrets is the key source of HS256: the current secret, and old ones that are
// still good for a while.
type secrets struct {
	watch

	path  string
	state atomic.Pointer[secretState]
}

type secretState struct {
	ring    *keyring
	current *key
}

func newSecrets(cfg Config) (*secrets, error) {
	if cfg.SecretFile == "" {
		return newSecretsOf(cfg)
	}
	s := &secrets{path: cfg.SecretFile}
	s.watch = watch{
		source: cfg.SecretFile,
		paths:  []string{cfg.SecretFile, cfg.SecretFile + previousSuffix},
		stat:   os.Lstat,
		load:   s.loadFiles,
		log:    cfg.Logger,
	}
	s.state.Store(&secretState{ring: &keyring{}})
	return s, s.start(cfg.Now())
}

// newSecretsOf has one secret for good.
func newSecretsOf(cfg Config) (*secrets, error) {
	switch {
	case len(cfg.Secret) == 0:
		return nil, errors.New("a secret file is required: set AFOOT_JWT_SECRET_FILE")
	case len(cfg.Secret) < minSecret:
		return nil, fmt.Errorf("the secret has %d bytes and needs at least %d", len(cfg.Secret), minSecret)
	}
	s := &secrets{}
	s.watch = watch{
		source: "memory",
		load:   func(now time.Time) error { s.take(cfg.Secret, nil, now); return nil },
		log:    cfg.Logger,
	}
	s.state.Store(&secretState{ring: &keyring{}})
	return s, s.start(cfg.Now())
}

func (s *secrets) keys() *keyring { return s.state.Load().ring }

// current is the secret that signs.
func (s *secrets) current() *key { return s.state.Load().current }

func (s *secrets) missed(_ context.Context, now time.Time, _ error) { s.refresh(now) }

func (s *secrets) begin() {}

// loadFiles reads the current secret first: RotateSecret writes it last, so that
// no order of the two lets a good secret fall through.
func (s *secrets) loadFiles(now time.Time) error {
	secret, err := LoadSecret(s.path)
	if err != nil {
		return err
	}
	old, err := loadPrevious(s.path + previousSuffix)
	if err != nil {
		return err
	}
	s.take(secret, old, now)
	return nil
}

// take makes the secret the current one, beside old ones that are still good.
func (s *secrets) take(secret []byte, old []oldSecret, now time.Time) {
	next := &keyring{byID: make(map[string]*key, 1+len(old))}
	ends := make(map[string]time.Time, len(old))
	candidates := make([]any, 0, 1+len(old))
	add := func(secret []byte) string {
		id := identify(secret)
		if next.byID[id] == nil {
			next.byID[id] = newKey(secret)
			candidates = append(candidates, secret)
		}
		return id
	}
	currentID := add(secret)
	for _, o := range old {
		if len(o.Secret) >= minSecret && now.Before(o.NotAfter) {
			if id := add(o.Secret); id != currentID {
				ends[id] = o.NotAfter
			}
		}
	}
	next.candidates = func(*jwt.Token) ([]any, error) { return candidates, nil }

	succeed(s.keys(), next, now)
	for id, k := range next.byID {
		if end, ok := ends[id]; ok {
			k.endAt(end)
		} else {
			k.endless()
		}
	}
	s.state.Store(&secretState{ring: next, current: next.byID[currentID]})
}

// identify names a key among those of its source.
func identify(material any) string {
	if secret, ok := material.([]byte); ok {
		return string(secret)
	}
	der, err := x509.MarshalPKIXPublicKey(material)
	if err != nil {
		return ""
	}
	return string(der)
}
