package auth

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

func TestRememberedIsBoundedInNumberAndBytes(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := Principal{key: newKey(nil), notAfter: now.Add(time.Hour)}
	held := func(r *remembered) (tokens, bytes int) {
		for _, token := range r.lru.Keys() {
			bytes += len(token)
		}
		return r.lru.Len(), bytes
	}

	byNumber := newRemembered(3, 1<<20)
	for i := range 10 {
		byNumber.put("token-"+strconv.Itoa(i), p)
		_, ok := byNumber.get("token-0", now)
		require.True(t, ok, "the most recently used one stays")
	}
	require.Equal(t, []string{"token-8", "token-9", "token-0"}, byNumber.lru.Keys())
	tokens, bytes := held(byNumber)
	require.Equal(t, 3, tokens)
	require.Equal(t, bytes, byNumber.bytes)

	byBytes := newRemembered(1000, 100)
	for i := range 10 {
		byBytes.put(strings.Repeat(strconv.Itoa(i), 30), p)
	}
	tokens, bytes = held(byBytes)
	require.Equal(t, 3, tokens)
	require.Equal(t, 90, bytes)
	require.Equal(t, bytes, byBytes.bytes)
	byBytes.put(strings.Repeat("x", 101), p)
	tokens, _ = held(byBytes)
	require.Zero(t, tokens, "what never fits isn't held")
	require.Zero(t, byBytes.bytes)

	twice := newRemembered(10, 100)
	twice.put("token", p)
	twice.put("token", p)
	require.Equal(t, 5, twice.bytes)
	_, ok := twice.get("token", now.Add(time.Hour))
	require.False(t, ok)
	require.Zero(t, twice.bytes, "an expired one is dropped when it is met")
}

func TestVerifyInParallelWithATinyMemory(t *testing.T) {
	r := newRig(t, func(c *Config) { c.RememberTokens = 2 })
	tokens := make([]string, 8)
	for i := range tokens {
		tokens[i] = r.token(t, jwt.MapClaims{"sid": "s" + strconv.Itoa(i)})
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				n := (g + i) % len(tokens)
				p, err := r.Verify(tokens[n])
				if err != nil || p.Session != "s"+strconv.Itoa(n) {
					t.Errorf("token %d: session %q, error %v", n, p.Session, err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, r.seen.lru.Len(), 2)
}

func TestARememberedVerifyAllocatesNothing(t *testing.T) {
	r := newRig(t, trusting(jwksFileOf(t, edSigner(t, "k"))))
	token := r.token(t, jwt.MapClaims{"iss": testIssuer, "aud": testAudience})
	_, err := r.Verify(token)
	require.NoError(t, err)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := r.Verify(token); err != nil {
			t.Error(err)
		}
	})
	require.Zero(t, allocs)
}

func BenchmarkVerify(b *testing.B) {
	r := newRig(b, func(c *Config) { c.Now = time.Now })
	token := signed(b, jwt.SigningMethodHS256, r.secret, "", jwt.MapClaims{
		"sid": "s1", "scope": "tasks:read tasks:write", "exp": time.Now().Add(time.Hour).Unix(),
	})
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Verify(token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered-parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := r.Verify(token); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("fresh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.prove(b.Context(), token, r.foreign.Load()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("refused", func(b *testing.B) {
		forged := wobble(token[:len(token)-1]) + "A"
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Verify(forged); err == nil {
				b.Fatal("the forged token passed")
			}
		}
	})
}
