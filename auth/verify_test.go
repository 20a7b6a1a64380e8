package auth

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

func TestVerifyGivesTheClaims(t *testing.T) {
	r := newRig(t)
	exp := r.clock.now().Unix() + 3600
	tests := map[string]struct {
		claims jwt.MapClaims
		want   Principal
	}{
		"all of them": {
			jwt.MapClaims{"sub": "ann", "agent": "agent-3"},
			Principal{Session: "s1", Subject: "ann", Agent: "agent-3", Scopes: TasksRead | TasksWrite},
		},
		"no session":              {jwt.MapClaims{"sid": nil, "sub": "bob"}, Principal{Subject: "bob", Scopes: TasksRead | TasksWrite}},
		"no scope":                {jwt.MapClaims{"scope": nil}, Principal{Session: "s1"}},
		"empty scope":             {jwt.MapClaims{"scope": ""}, Principal{Session: "s1"}},
		"unknown scopes":          {jwt.MapClaims{"scope": "openid  tasks:read tasks:Write"}, Principal{Session: "s1", Scopes: TasksRead}},
		"metrics":                 {jwt.MapClaims{"scope": "metrics"}, Principal{Session: "s1", Scopes: Metrics}},
		"longest session":         {jwt.MapClaims{"sid": strings.Repeat("~", 128), "scope": nil}, Principal{Session: strings.Repeat("~", 128)}},
		"past nbf":                {jwt.MapClaims{"nbf": exp - 3600, "scope": nil}, Principal{Session: "s1"}},
		"our audience":            {jwt.MapClaims{"aud": "afoot", "scope": nil}, Principal{Session: "s1"}},
		"our audience among them": {jwt.MapClaims{"aud": []string{"x", "afoot"}, "scope": nil}, Principal{Session: "s1"}},
		"any issuer":              {jwt.MapClaims{"iss": "somebody", "scope": nil}, Principal{Session: "s1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			token := r.token(t, tt.claims)
			for _, how := range []string{"verified", "remembered"} {
				p, err := r.Verify(token)
				require.NoError(t, err, how)
				require.Equal(t, exp, p.ExpiresAt.Unix())
				require.Equal(t, tt.want.claims(), p.claims(), how)
			}
		})
	}
}

// TestJ4ForgedTokens is the table of tokens that must never pass. Every one is
// tried twice, since a failure must not be remembered as anything else.
func TestJ4ForgedTokens(t *testing.T) {
	r := newRig(t)
	now := r.clock.now().Unix()
	good := r.token(t, nil)
	parts := strings.Split(good, ".")
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	payload := `{"sid":"s1","exp":1900000000}`
	ed := edSigner(t, "k")

	tests := map[string]struct{ token, says string }{
		"empty":                       {"", "not a signed JWT"},
		"garbage":                     {"garbage", "not a signed JWT"},
		"two parts":                   {parts[0] + "." + parts[1], "not a signed JWT"},
		"four parts":                  {good + ".x", "not a signed JWT"},
		"dots":                        {"..", "not a signed JWT"},
		"a character outside":         {good + "=", "not a signed JWT"},
		"too large":                   {good + strings.Repeat("A", MaxTokenBytes), "larger than 8192 bytes"},
		"a million dots":              {strings.Repeat(".", 1_000_000), "larger than 8192 bytes"},
		"no signature":                {parts[0] + "." + parts[1] + ".", "not a signed JWT"},
		"another secret":              {signed(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), "", r.claims(nil)), "signed with a key that is not known"},
		"another secret with kid":     {signed(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), "k", r.claims(nil)), "signature is not good"},
		"changed payload":             {parts[0] + "." + b64(payload) + "." + parts[2], "not known here"},
		"changed signature":           {parts[0] + "." + parts[1] + "." + b64(strings.Repeat("x", 32)), "not known here"},
		"alg none":                    {signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", r.claims(nil)) + "AAAA", "algorithm is not accepted"},
		"alg none unsigned":           {signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", r.claims(nil)), "not a signed JWT"},
		"alg None":                    {b64(`{"alg":"None"}`) + "." + parts[1] + ".AAAA", "algorithm is not accepted"},
		"alg HS384":                   {signed(t, jwt.SigningMethodHS384, r.secret, "", r.claims(nil)), "algorithm is not accepted"},
		"alg HS512":                   {signed(t, jwt.SigningMethodHS512, r.secret, "", r.claims(nil)), "algorithm is not accepted"},
		"alg EdDSA without a JWKS":    {signed(t, ed.method, ed.private, "k", r.claims(nil)), "algorithm is not accepted"},
		"alg missing":                 {raw(t, r.secret, `{"typ":"JWT"}`, payload), "algorithm is not accepted"},
		"alg a number":                {raw(t, r.secret, `{"alg":1}`, payload), "algorithm is not accepted"},
		"header null":                 {raw(t, r.secret, `null`, payload), "algorithm is not accepted"},
		"header not JSON":             {raw(t, r.secret, `{`, payload), "well-formed"},
		"critical extension":          {raw(t, r.secret, `{"alg":"HS256","crit":["b64"],"b64":false}`, payload), "crit"},
		"payload null":                {raw(t, r.secret, `{"alg":"HS256"}`, `null`), "no claim exp"},
		"payload array":               {raw(t, r.secret, `{"alg":"HS256"}`, `[]`), "well-formed"},
		"payload not JSON":            {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":`), "well-formed"},
		"payload twice exp":           {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":1,"exp":1900000000}`), "well-formed"},
		"payload bad UTF-8":           {raw(t, r.secret, `{"alg":"HS256"}`, "{\"sub\":\"\xff\",\"exp\":1900000000}"), "well-formed"},
		"payload deep":                {raw(t, r.secret, `{"alg":"HS256"}`, `{"x":`+strings.Repeat("[", 5000)), "well-formed"},
		"exp under another case":      {raw(t, r.secret, `{"alg":"HS256"}`, `{"sid":"s1","EXP":1900000000}`), "no claim exp"},
		"no exp":                      {r.token(t, jwt.MapClaims{"exp": nil}), "no claim exp"},
		"exp a string":                {r.token(t, jwt.MapClaims{"exp": "1900000000"}), "claim exp is not a number"},
		"exp null":                    {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":null}`), "claim exp is not a number"},
		"exp true":                    {r.token(t, jwt.MapClaims{"exp": true}), "claim exp is not a number"},
		"exp beyond all numbers":      {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":1e999}`), "claim exp is not a"},
		"exp beyond all times":        {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":1e300}`), "not a time in seconds"},
		"exp in milliseconds":         {r.token(t, jwt.MapClaims{"exp": now * 1000}), "not a time in seconds"},
		"expired":                     {r.token(t, jwt.MapClaims{"exp": now - 1}), "expired"},
		"expiring now":                {r.token(t, jwt.MapClaims{"exp": now}), "expired"},
		"negative exp":                {r.token(t, jwt.MapClaims{"exp": -1}), "expired"},
		"future nbf":                  {r.token(t, jwt.MapClaims{"nbf": now + 1}), "not valid yet"},
		"nbf a string":                {r.token(t, jwt.MapClaims{"nbf": "0"}), "claim nbf is not a number"},
		"iat a string":                {r.token(t, jwt.MapClaims{"iat": "0"}), "claim iat is not a number"},
		"wrong aud":                   {r.token(t, jwt.MapClaims{"aud": "bank"}), "another audience"},
		"wrong auds":                  {r.token(t, jwt.MapClaims{"aud": []string{"bank", "Afoot"}}), "another audience"},
		"empty aud":                   {r.token(t, jwt.MapClaims{"aud": ""}), "another audience"},
		"no aud in the array":         {r.token(t, jwt.MapClaims{"aud": []string{}}), "another audience"},
		"aud a number":                {r.token(t, jwt.MapClaims{"aud": 1}), "claim aud is not a string"},
		"aud null":                    {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":1900000000,"aud":null}`), "claim aud is not a string"},
		"aud mixed":                   {r.token(t, jwt.MapClaims{"aud": []any{"afoot", 1}}), "claim aud is not a string"},
		"sid empty":                   {r.token(t, jwt.MapClaims{"sid": ""}), "claim sid must be"},
		"sid too long":                {r.token(t, jwt.MapClaims{"sid": strings.Repeat("s", 129)}), "claim sid must be"},
		"sid with a control":          {r.token(t, jwt.MapClaims{"sid": "a\nb"}), "claim sid must be"},
		"sid not ASCII":               {r.token(t, jwt.MapClaims{"sid": "sé"}), "claim sid must be"},
		"sid a number":                {r.token(t, jwt.MapClaims{"sid": 7}), "claim sid is not a string"},
		"sid null":                    {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":1900000000,"sid":null}`), "claim sid is not a string"},
		"sid an array":                {r.token(t, jwt.MapClaims{"sid": []string{"s1"}}), "claim sid is not a string"},
		"agent without sid":           {r.token(t, jwt.MapClaims{"sid": nil, "agent": "agent-1"}), "agent without the claim sid"},
		"agent a number":              {r.token(t, jwt.MapClaims{"agent": 1}), "claim agent is not a string"},
		"agent empty":                 {r.token(t, jwt.MapClaims{"agent": ""}), "claim agent must be"},
		"agent null":                  {raw(t, r.secret, `{"alg":"HS256"}`, `{"exp":1900000000,"sid":"s1","agent":null}`), "claim agent is not a string"},
		"sub a number":                {r.token(t, jwt.MapClaims{"sub": 1}), "claim sub is not a string"},
		"scope an array":              {r.token(t, jwt.MapClaims{"scope": []string{"tasks:read"}}), "claim scope is not a string"},
		"trailing bits in signature":  {wobble(good), "well-formed"},
		"trailing bits in the header": {wobble(parts[0]) + "." + parts[1] + "." + parts[2], ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				p, err := r.Verify(tt.token)
				e := requireKind(t, KindUnauthenticated, err)
				require.Zero(t, p)
				require.Contains(t, e.Message, tt.says)
				if len(tt.token) > 8 {
					require.NotContains(t, e.Error(), tt.token[:8], "a message must not quote the token")
				}
			}
		})
	}
	require.Zero(t, r.seen.lru.Len(), "failures were remembered")
	_, err := r.Verify(good)
	require.NoError(t, err, "the good one of which the forgeries were made")
}

// wobble changes bits of the last character that decoding would not look at.
func wobble(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	i := strings.IndexByte(alphabet, s[len(s)-1])
	return s[:len(s)-1] + string(alphabet[i^1])
}

func TestIssuerAndAudienceMustMatchWhenConfigured(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Issuer, c.Audience = "https://id.example", "tasks" })
	tests := map[string]struct {
		claims jwt.MapClaims
		says   string
	}{
		"both":            {jwt.MapClaims{"iss": "https://id.example", "aud": []string{"x", "tasks"}}, ""},
		"no iss":          {jwt.MapClaims{"aud": "tasks"}, "issuer or audience"},
		"no aud":          {jwt.MapClaims{"iss": "https://id.example"}, "issuer or audience"},
		"other iss":       {jwt.MapClaims{"iss": "https://id.example/", "aud": "tasks"}, "another issuer"},
		"iss a number":    {jwt.MapClaims{"iss": 1, "aud": "tasks"}, "claim iss is not a string"},
		"other aud":       {jwt.MapClaims{"iss": "https://id.example", "aud": "tasks2"}, "another audience"},
		"default aud now": {jwt.MapClaims{"iss": "https://id.example", "aud": "afoot"}, "another audience"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := r.Verify(r.token(t, tt.claims))
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.Contains(t, requireKind(t, KindUnauthenticated, err).Message, tt.says)
		})
	}
	token, _, err := r.Mint(Claims{Session: "s1"}, time.Hour)
	require.NoError(t, err)
	_, err = r.Verify(token)
	require.NoError(t, err, "our own tokens carry what is configured")
}

// TestExpiryIsExact looks at both sides of exp, for a fresh and for a remembered
// token, and at a fraction of a second.
func TestExpiryIsExact(t *testing.T) {
	r := newRig(t)
	now := r.clock.now().Unix()
	whole := r.token(t, jwt.MapClaims{"exp": now + 3})
	fraction := r.token(t, jwt.MapClaims{"exp": float64(now) + 3.5})
	later := r.token(t, jwt.MapClaims{"exp": now + 3, "nbf": now + 2})

	_, err := r.Verify(whole)
	require.NoError(t, err)
	_, err = r.Verify(later)
	requireKind(t, KindUnauthenticated, err)
	r.clock.advance(2 * time.Second)
	_, err = r.Verify(later)
	require.NoError(t, err, "a failure before nbf must not stick")
	r.clock.advance(time.Second - 1)
	_, err = r.Verify(whole)
	require.NoError(t, err, "one nanosecond before exp")
	r.clock.advance(1)
	_, err = r.Verify(whole)
	requireKind(t, KindUnauthenticated, err)
	p, err := r.Verify(fraction)
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, p.ExpiresAt.Sub(r.clock.now()))
	r.clock.advance(500 * time.Millisecond)
	_, err = r.Verify(fraction)
	requireKind(t, KindUnauthenticated, err)
}

func TestAuthenticateTakesOneBearerHeaderAndNothingElse(t *testing.T) {
	r := newRig(t)
	token := r.token(t, nil)
	tests := map[string]struct {
		header http.Header
		says   string
	}{
		"plain":              {http.Header{"Authorization": {"Bearer " + token}}, ""},
		"another case":       {http.Header{"Authorization": {"bEARER " + token}}, ""},
		"more spaces":        {http.Header{"Authorization": {"Bearer   " + token}}, ""},
		"none":               {http.Header{}, "a token is needed"},
		"a cookie":           {http.Header{"Cookie": {"Authorization=Bearer " + token + "; token=" + token}}, "a token is needed"},
		"two":                {http.Header{"Authorization": {"Bearer " + token, "Bearer " + token}}, "exactly one"},
		"basic":              {http.Header{"Authorization": {"Basic " + token}}, "must be: Bearer"},
		"no scheme":          {http.Header{"Authorization": {token}}, "must be: Bearer"},
		"no space":           {http.Header{"Authorization": {"Bearer" + token}}, "must be: Bearer"},
		"tab":                {http.Header{"Authorization": {"Bearer\t" + token}}, "must be: Bearer"},
		"empty":              {http.Header{"Authorization": {""}}, "must be: Bearer"},
		"only the scheme":    {http.Header{"Authorization": {"Bearer"}}, "must be: Bearer"},
		"scheme and spaces":  {http.Header{"Authorization": {"Bearer   "}}, "no token"},
		"two tokens":         {http.Header{"Authorization": {"Bearer " + token + " " + token}}, "not a signed JWT"},
		"comma":              {http.Header{"Authorization": {"Bearer " + token + ","}}, "not a signed JWT"},
		"another header":     {http.Header{"X-Authorization": {"Bearer " + token}}, "a token is needed"},
		"proxy header":       {http.Header{"Proxy-Authorization": {"Bearer " + token}}, "a token is needed"},
		"quoted":             {http.Header{"Authorization": {`Bearer "` + token + `"`}}, "not a signed JWT"},
		"a token in a query": {nil, "a token is needed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, "/tasks?access_token="+token+"&token="+token, nil)
			req.Header = tt.header
			p, err := r.Authenticate(req)
			if tt.says == "" {
				require.NoError(t, err)
				require.Equal(t, "s1", p.Session)
				return
			}
			require.Contains(t, requireKind(t, KindUnauthenticated, err).Message, tt.says)
		})
	}
}

// TestJ4AMillionDotsStayFlat counts what 100 parallel attempts allocate in all.
func TestJ4AMillionDotsStayFlat(t *testing.T) {
	r := newRig(t)
	header := "Bearer " + strings.Repeat(".", 1_000_000)
	req := httptest.NewRequest(http.MethodGet, "/tasks", nil)
	req.Header.Set("Authorization", header)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	errs := make([]error, 100)
	for i := range errs {
		wg.Go(func() { _, errs[i] = r.Authenticate(req) })
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	for _, err := range errs {
		requireKind(t, KindUnauthenticated, err)
	}
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), "bytes allocated for 100 MB of dots")
}
