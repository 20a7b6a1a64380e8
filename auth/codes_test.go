package auth

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

func (r *rig) principal(tb testing.TB, extra jwt.MapClaims) Principal {
	tb.Helper()
	p, err := r.Verify(r.token(tb, extra))
	require.NoError(tb, err)
	return p
}

func TestACodeGivesATokenOfItsClaimsOnce(t *testing.T) {
	r := newRig(t)
	p := r.principal(t, jwt.MapClaims{"sub": "ann", "agent": "agent-2", "scope": "tasks:read"})
	r.clock.advance(10500 * time.Millisecond)
	code, codeEnds, err := r.NewCode(p)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(code), 22, "128 bits")
	require.Equal(t, CodeLife, codeEnds.Sub(r.clock.now()))

	r.clock.advance(CodeLife - 1)
	token, expiresAt, err := r.Exchange(code)
	require.NoError(t, err)
	require.True(t, expiresAt.Equal(p.ExpiresAt), "it ends when the original does")
	got, err := r.Verify(token)
	require.NoError(t, err)
	require.Equal(t, p.claims(), got.claims())

	_, _, err = r.Exchange(code)
	require.Contains(t, requireKind(t, KindUnauthenticated, err).Message, "used or expired")

	_, renewed, err := r.Renew(got)
	require.NoError(t, err)
	require.Equal(t, time.Hour, renewed.Sub(r.clock.now().Truncate(time.Second)), "it renews like the original")
}

func TestCodesThatGiveNothing(t *testing.T) {
	r := newRig(t)
	p := r.principal(t, jwt.MapClaims{"exp": r.clock.now().Unix() + 600})
	for _, code := range []string{"", "x", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", string(make([]byte, 1<<20))} {
		_, _, err := r.Exchange(code)
		requireKind(t, KindUnauthenticated, err)
	}
	code, _, err := r.NewCode(p)
	require.NoError(t, err)
	r.clock.advance(CodeLife)
	_, _, err = r.Exchange(code)
	requireKind(t, KindUnauthenticated, err)
	r.clock.advance(-time.Second)
	_, _, err = r.Exchange(code)
	requireKind(t, KindUnauthenticated, err)

	short := r.principal(t, jwt.MapClaims{"sid": "s2", "exp": float64(r.clock.now().Unix()) + 5.5})
	code, ends, err := r.NewCode(short)
	require.NoError(t, err)
	require.True(t, ends.Equal(short.ExpiresAt), "a code doesn't outlive its token")
	r.clock.advance(5200 * time.Millisecond)
	_, _, err = r.Exchange(code)
	requireKind(t, KindUnauthenticated, err)
}

// TestOneCodeWinsOnce: 100 goroutines try one code.
func TestOneCodeWinsOnce(t *testing.T) {
	r := newRig(t)
	for round := range 20 {
		code, _, err := r.NewCode(r.principal(t, jwt.MapClaims{"sid": "s" + strconv.Itoa(round)}))
		require.NoError(t, err)
		var wg sync.WaitGroup
		tokens := make([]string, 100)
		errs := make([]error, 100)
		start := make(chan struct{})
		for i := range tokens {
			wg.Go(func() {
				<-start
				tokens[i], _, errs[i] = r.Exchange(code)
			})
		}
		close(start)
		wg.Wait()
		won := 0
		for i := range tokens {
			if errs[i] == nil {
				won++
				_, err := r.Verify(tokens[i])
				require.NoError(t, err)
				continue
			}
			requireKind(t, KindUnauthenticated, errs[i])
			require.Empty(t, tokens[i])
		}
		require.Equal(t, 1, won)
	}
}

func TestCodesAreRateLimitedPerSession(t *testing.T) {
	r := newRig(t, func(c *Config) { c.CodeEvery, c.CodeBurst = 6*time.Second, 3 })
	a, b := r.principal(t, nil), r.principal(t, jwt.MapClaims{"sid": "s2"})
	ann, bob := r.principal(t, jwt.MapClaims{"sid": nil, "sub": "s1"}), r.principal(t, jwt.MapClaims{"sid": nil, "sub": "bob"})
	seen := map[string]bool{}
	for range 3 {
		code, _, err := r.NewCode(a)
		require.NoError(t, err)
		seen[code] = true
	}
	require.Len(t, seen, 3)
	r.clock.advance(2 * time.Second)
	for range 5 {
		_, _, err := r.NewCode(a)
		e := requireKind(t, KindRateLimited, err)
		require.Equal(t, 4*time.Second, e.RetryAfter, "refusals cost nothing")
		require.Equal(t, "more sign-in codes were asked for than 3 at once and one each 6s; ask again later", e.Message)
	}
	for _, other := range []Principal{b, ann, bob} {
		_, _, err := r.NewCode(other)
		require.NoError(t, err, "others are not held up")
	}
	r.clock.advance(4 * time.Second)
	_, _, err := r.NewCode(a)
	require.NoError(t, err)
	_, _, err = r.NewCode(a)
	requireKind(t, KindRateLimited, err)
}

func TestOutstandingCodesAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxCodes = 5 })
	var first string
	for i := range 5 {
		code, _, err := r.NewCode(r.principal(t, jwt.MapClaims{"sid": "s" + strconv.Itoa(i)}))
		require.NoError(t, err)
		if i == 0 {
			first = code
		}
	}
	one := r.principal(t, jwt.MapClaims{"sid": "one"})
	_, _, err := r.NewCode(one)
	require.Equal(t, CodeLife, requireKind(t, KindRateLimited, err).RetryAfter)
	require.ErrorContains(t, err, "5 sign-in codes")
	_, _, err = r.Exchange(first)
	require.NoError(t, err)
	_, _, err = r.NewCode(one)
	require.NoError(t, err, "an exchange makes room")
	_, _, err = r.NewCode(one)
	requireKind(t, KindRateLimited, err)
	r.clock.advance(CodeLife)
	_, _, err = r.NewCode(one)
	require.NoError(t, err, "expiry makes room")
	require.Len(t, r.codes.grants, 1)
}
