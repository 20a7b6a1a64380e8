package auth

import (
	"log/slog"
	"time"
)

// MaxTokenBytes bounds a token; a larger one is refused before it is parsed.
const MaxTokenBytes = 8 << 10

// CodeLife is how long a one-time code is good.
const CodeLife = time.Minute

// Config says which keys and claims an [Authority] trusts. Zero values of the
// bounds mean the defaults in parentheses.
type Config struct {
	// SecretFile holds the daemon's own HS256 secret (see [EnsureSecret]).
	SecretFile string
	// Secret is the secret itself, where there is no file.
	Secret []byte
	// JWKS is the path or http(s) URL of a key set; empty for none. It requires
	// Issuer and Audience.
	JWKS string
	// Issuer, if set, must be the iss of every token; minted tokens carry it.
	Issuer string
	// Audience, if set, must be among the aud of every token. If not, a token that
	// has aud must name "afoot". Minted tokens carry it, or "afoot".
	Audience string

	// MaxTTL caps the life of renewed tokens (24 h).
	MaxTTL time.Duration
	// CodeEvery and CodeBurst limit one-time codes per session, or per subject
	// without one: a burst (10), then one each CodeEvery (6 s).
	CodeEvery time.Duration
	CodeBurst int
	// MaxCodes bounds the one-time codes outstanding in all (10,000).
	MaxCodes int
	// RememberTokens and RememberBytes bound the memory of verified tokens (10,000
	// and 8 MiB of token text).
	RememberTokens int
	RememberBytes  int

	// JWKSRefresh is how often a JWKS URL is fetched anew (15 min), JWKSRetry the
	// least time between two fetches that unknown keys cause, and the wait after a
	// failed one (10 s), JWKSTimeout the bound of one fetch (5 s).
	JWKSRefresh, JWKSRetry, JWKSTimeout time.Duration

	// Now is the clock (time.Now).
	Now func() time.Time
	// Logger hears of keys that came, went or can't be read (nothing).
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxTTL = orElse(c.MaxTTL, 24*time.Hour)
	c.CodeEvery = orElse(c.CodeEvery, 6*time.Second)
	c.CodeBurst = orElse(c.CodeBurst, 10)
	c.MaxCodes = orElse(c.MaxCodes, 10_000)
	c.RememberTokens = orElse(c.RememberTokens, 10_000)
	c.RememberBytes = orElse(c.RememberBytes, 8<<20)
	c.JWKSRefresh = orElse(c.JWKSRefresh, 15*time.Minute)
	c.JWKSRetry = orElse(c.JWKSRetry, 10*time.Second)
	c.JWKSTimeout = orElse(c.JWKSTimeout, 5*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// orElse gives v if it is positive, else the default.
func orElse[T ~int | ~int64](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

// Keys of log attributes.
const (
	logError  = "error"
	logSource = "source"
	logKeys   = "keys"
	logReason = "reason"
	logIndex  = "index"
)
