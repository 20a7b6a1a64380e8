package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// maxKeyset bounds a JWKS document, in bytes, and maxKeys the keys in it.
	maxKeyset = 1 << 20
	maxKeys   = 100
	// minRSA and maxRSA bound the size of an RSA key, in bits.
	minRSA = 2048
	maxRSA = 8192
)

// parseKeyset reads a JWKS document. Keys that no accepted algorithm can use (for
// encryption, symmetric, too small, damaged) are logged and left out; of private
// keys only the public half is taken. It may find no key at all.
func parseKeyset(data []byte, source string, log *slog.Logger) (*keyring, error) {
	var doc struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &doc); err != nil || doc.Keys == nil {
		return nil, errors.New("it is not a JWKS: an object with the array keys is expected")
	}
	if len(*doc.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys; at most %d are allowed", len(*doc.Keys), maxKeys)
	}
	ctx := context.Background()
	store := jwkset.NewMemoryStorage()
	ring := &keyring{byID: make(map[string]*key)}
	for i, raw := range *doc.Keys {
		jwk, err := parseJWK(raw)
		if err != nil {
			log.Warn("key of a JWKS left out", logSource, source, logIndex, i, logReason, err)
			continue
		}
		if err := store.KeyWrite(ctx, jwk); err != nil {
			return nil, err
		}
		ring.byID[identify(jwk.Key())] = newKey(jwk.Key())
	}
	lookup, err := keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: store})
	if err != nil {
		return nil, err
	}
	ring.candidates = func(t *jwt.Token) ([]any, error) { return named(lookup, t) }
	return ring, nil
}

// parseJWK gives a key that can verify RS256, ES256 or EdDSA, or says why not.
func parseJWK(raw json.RawMessage) (jwkset.JWK, error) {
	// Without Private, secrets are refused and private halves dropped. Without a
	// GetX5U, nothing is fetched.
	jwk, err := jwkset.NewJWKFromRawJSON(raw, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return jwkset.JWK{}, err
	}
	meta := jwk.Marshal()
	if meta.USE != "" && meta.USE != jwkset.UseSig {
		return jwkset.JWK{}, errors.New("its use is not sig")
	}
	if len(meta.KEYOPS) > 0 && !slices.Contains(meta.KEYOPS, jwkset.KeyOpsVerify) {
		return jwkset.JWK{}, errors.New("its key_ops lack verify")
	}
	var alg jwkset.ALG
	switch k := jwk.Key().(type) {
	case *rsa.PublicKey:
		alg = jwkset.AlgRS256
		if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
			return jwkset.JWK{}, fmt.Errorf("it is an RSA key of %d bits; %d to %d are accepted", bits, minRSA, maxRSA)
		}
	case *ecdsa.PublicKey:
		alg = jwkset.AlgES256
		if k.Curve != elliptic.P256() {
			return jwkset.JWK{}, errors.New("its curve is not P-256")
		}
	case ed25519.PublicKey:
		alg = jwkset.AlgEdDSA
	default:
		return jwkset.JWK{}, errors.New("its type verifies no accepted algorithm")
	}
	if meta.ALG != "" && meta.ALG != alg {
		return jwkset.JWK{}, fmt.Errorf("its alg is not %s", alg)
	}
	return jwk, nil
}

// named gives the key that t's kid names, or all that t's algorithm may use if it
// has no kid.
func named(lookup keyfunc.Keyfunc, t *jwt.Token) ([]any, error) {
	found, err := lookup.Keyfunc(t)
	switch {
	case errors.Is(err, jwkset.ErrKeyNotFound):
		return nil, errNoKey
	case err != nil:
		return nil, err
	}
	all, ok := found.(jwt.VerificationKeySet)
	if !ok {
		return []any{found}, nil
	}
	candidates := make([]any, len(all.Keys))
	for i, k := range all.Keys {
		candidates[i] = k
	}
	return candidates, nil
}
