package auth

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// payload reads a token's claims without checking anything.
func payload(t *testing.T, token string) map[string]any {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	require.NoError(t, err)
	var claims map[string]any
	require.NoError(t, json.Unmarshal(data, &claims))
	return claims
}

func TestMintedTokensAreWhatWasAsked(t *testing.T) {
	r := newRig(t)
	claims := Claims{Session: "s 1", Subject: "ann <a&b>", Agent: "agent-7", Scopes: TasksRead | Metrics}
	token, expiresAt, err := r.Mint(claims, time.Hour)
	require.NoError(t, err)
	require.Equal(t, r.clock.now().Add(time.Hour), expiresAt)

	got := payload(t, token)
	require.NotEmpty(t, got["jti"])
	delete(got, "jti")
	now := float64(r.clock.now().Unix())
	require.Equal(t, map[string]any{
		"sid": "s 1", "sub": "ann <a&b>", "agent": "agent-7", "scope": "tasks:read metrics",
		"aud": []any{"afoot"}, "iat": now, "exp": now + 3600,
	}, got)
	p, err := r.Verify(token)
	require.NoError(t, err)
	require.Equal(t, claims, p.claims())
	require.True(t, p.ExpiresAt.Equal(expiresAt))

	twin, _, err := r.Mint(claims, time.Hour)
	require.NoError(t, err)
	require.NotEqual(t, token, twin)
}

func TestMintedTokensOfNobody(t *testing.T) {
	r := newRig(t)
	token, _, err := r.Mint(Claims{}, time.Hour)
	require.NoError(t, err)
	for _, absent := range []string{"sid", "sub", "agent", "scope", "iss"} {
		require.NotContains(t, payload(t, token), absent)
	}
	p, err := r.Verify(token)
	require.NoError(t, err)
	require.Zero(t, p.claims())
}

// TestMintNeverLivesShorterThanAsked although exp is in whole seconds.
func TestMintNeverLivesShorterThanAsked(t *testing.T) {
	r := newRig(t)
	r.clock.advance(900 * time.Millisecond)
	for _, ttl := range []time.Duration{1, time.Second, 3 * time.Second, 3*time.Second + 100*time.Millisecond} {
		_, expiresAt, err := r.Mint(Claims{}, ttl)
		require.NoError(t, err)
		life := expiresAt.Sub(r.clock.now())
		require.GreaterOrEqual(t, life, ttl)
		require.Less(t, life, ttl+time.Second)
	}
}

func TestMintRefusesClaimsThatNoTokenMayCarry(t *testing.T) {
	r := newRig(t)
	tests := map[string]struct {
		claims Claims
		ttl    time.Duration
		says   string
	}{
		"no life":               {Claims{}, 0, "positive time"},
		"negative life":         {Claims{}, -time.Second, "positive time"},
		"long session":          {Claims{Session: strings.Repeat("s", 129)}, time.Hour, "a session must be"},
		"session not printable": {Claims{Session: "a\x00"}, time.Hour, "a session must be"},
		"agent, no session":     {Claims{Agent: "agent-1"}, time.Hour, "an agent needs a session"},
		"agent not printable":   {Claims{Session: "s", Agent: "ä"}, time.Hour, "an agent must be"},
		"huge subject":          {Claims{Subject: strings.Repeat("<", MaxTokenBytes)}, time.Hour, "use a shorter subject"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := r.Mint(tt.claims, tt.ttl)
			require.Contains(t, requireKind(t, KindInvalid, err).Message, tt.says)
		})
	}
}

func TestRenewGivesTheSameClaimsAndTheSameLife(t *testing.T) {
	r := newRig(t)
	now := r.clock.now().Unix()
	tests := map[string]struct {
		claims jwt.MapClaims
		life   time.Duration
	}{
		"an hour":           {nil, time.Hour},
		"three seconds":     {jwt.MapClaims{"exp": now + 3}, 3 * time.Second},
		"more than the cap": {jwt.MapClaims{"exp": now + 90_000}, 24 * time.Hour},
		"issued long ago":   {jwt.MapClaims{"iat": now - 3600, "exp": now + 60}, time.Hour + time.Minute},
		"less than one":     {jwt.MapClaims{"iat": float64(now) + 1.5, "exp": float64(now) + 1.7}, time.Second},
		"no iat":            {jwt.MapClaims{"iat": nil, "exp": now + 60}, 59 * time.Second},
		"iat after exp":     {jwt.MapClaims{"iat": now + 120, "exp": now + 60}, 59 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r.clock.offset.Store(0)
			presented := r.token(t, jwt.MapClaims{"agent": "agent-1", "sub": "ann"})
			if tt.claims != nil {
				tt.claims["agent"], tt.claims["sub"] = "agent-1", "ann"
				presented = r.token(t, tt.claims)
			}
			r.clock.advance(1200 * time.Millisecond)
			p, err := r.Verify(presented)
			require.NoError(t, err)
			token, expiresAt, err := r.Renew(p)
			require.NoError(t, err)
			require.NotEqual(t, presented, token)
			require.Equal(t, tt.life, expiresAt.Sub(r.clock.now().Truncate(time.Second)))
			fresh, err := r.Verify(token)
			require.NoError(t, err)
			require.Equal(t, p.claims(), fresh.claims())
			require.True(t, fresh.ExpiresAt.Equal(expiresAt))
		})
	}
}

// TestRenewingForEverDoesNotDrift: whole seconds must not add up.
func TestRenewingForEverDoesNotDrift(t *testing.T) {
	r := newRig(t)
	r.clock.advance(300 * time.Millisecond)
	token, _, err := r.Mint(Claims{Session: "s1"}, 10*time.Second)
	require.NoError(t, err)
	for range 100 {
		r.clock.advance(1700 * time.Millisecond)
		p, err := r.Verify(token)
		require.NoError(t, err)
		require.LessOrEqual(t, p.notAfter.Sub(p.issuedAt), 11*time.Second)
		require.GreaterOrEqual(t, p.notAfter.Sub(p.issuedAt), 10*time.Second)
		token, _, err = r.Renew(p)
		require.NoError(t, err)
	}
}

func TestNothingIsMadeForAnEndedOrInventedPrincipal(t *testing.T) {
	r := newRig(t)
	p, err := r.Verify(r.token(t, jwt.MapClaims{"exp": r.clock.now().Unix() + 3}))
	require.NoError(t, err)
	r.clock.advance(3 * time.Second)
	invented := Principal{Session: "s1", Scopes: TasksWrite, ExpiresAt: r.clock.now().Add(time.Hour)}
	for _, p := range []Principal{p, invented, {}} {
		_, _, err = r.Renew(p)
		requireKind(t, KindUnauthenticated, err)
		_, _, err = r.NewCode(p)
		requireKind(t, KindUnauthenticated, err)
	}
}
