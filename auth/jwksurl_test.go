package auth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// provider is an identity provider's key endpoint on a real socket.
type provider struct {
	*httptest.Server

	answer atomic.Pointer[http.HandlerFunc]
	hits   atomic.Int64
	hit    chan struct{} // one for each request that came, as far as there is room
}

func newProvider(tb testing.TB, answer http.HandlerFunc) *provider {
	tb.Helper()
	p := &provider{hit: make(chan struct{}, 1000)}
	p.answer.Store(&answer)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.hits.Add(1)
		(*p.answer.Load())(w, r)
		select {
		case p.hit <- struct{}{}:
		default:
		}
	}))
	tb.Cleanup(p.Close)
	return p
}

func (p *provider) serve(answer http.HandlerFunc) { p.answer.Store(&answer) }

func sends(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

func fails(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// slowly makes background fetches of their own accord rare, so that a test sees
// only those that it causes.
func slowly(c *Config) { c.JWKSRefresh, c.JWKSRetry = time.Hour, 10*time.Second }

func TestJWKSFromAURL(t *testing.T) {
	rs, es, ed := rsaSigner(t, "r"), ecSigner(t, "e"), edSigner(t, "d")
	p := newProvider(t, sends(document(t, rs, es, ed)))
	r := newRig(t, trusting(p.URL+"/jwks"), slowly)
	for _, s := range []signer{rs, es, ed} {
		_, err := r.Verify(r.by(t, s, nil))
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, p.hits.Load())
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "Close is idempotent")
	_, err := r.Verify(r.by(t, ecSigner(t, "unknown"), nil))
	requireKind(t, KindUnauthenticated, err)
	_, err = r.Verify(r.by(t, es, nil))
	require.NoError(t, err, "a closed authority still verifies")
}

// TestAnUnknownKidFetchesButNotTooOften: the provider rotates; the first token of
// the new key is good at once, tokens of invented keys don't turn into a flood.
func TestAnUnknownKidFetchesButNotTooOften(t *testing.T) {
	old, fresh := edSigner(t, "old"), edSigner(t, "new")
	p := newProvider(t, sends(document(t, old)))
	r := newRig(t, trusting(p.URL), slowly)
	oldToken, freshToken := r.by(t, old, nil), r.by(t, fresh, nil)
	_, err := r.Verify(oldToken)
	require.NoError(t, err)

	p.serve(sends(document(t, fresh)))
	_, err = r.Verify(oldToken)
	require.NoError(t, err, "remembered")

	var wg sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		wg.Go(func() { _, errs[i] = r.Verify(freshToken) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err, "all of them join the one fetch")
	}
	require.EqualValues(t, 2, p.hits.Load(), "one fetch for all")
	_, err = r.Verify(freshToken)
	require.NoError(t, err)
	_, err = r.Verify(oldToken)
	requireKind(t, KindUnauthenticated, err)

	for range 20 {
		_, err = r.Verify(r.by(t, edSigner(t, "invented"), nil))
		require.Contains(t, requireKind(t, KindUnauthenticated, err).Message, "key that is not known here")
		_, err = r.Verify(r.by(t, edSigner(t, "new"), nil))
		require.Contains(t, requireKind(t, KindUnauthenticated, err).Message, "signature is not good")
	}
	require.EqualValues(t, 2, p.hits.Load(), "no fetch within the retry time")

	r.clock.advance(10 * time.Second)
	_, err = r.Verify(r.by(t, edSigner(t, "invented"), nil))
	requireKind(t, KindUnauthenticated, err)
	require.EqualValues(t, 3, p.hits.Load())
	r.clock.advance(10 * time.Second)
	_, err = r.Verify(r.by(t, edSigner(t, "new"), nil))
	requireKind(t, KindUnauthenticated, err)
	require.EqualValues(t, 3, p.hits.Load(), "a bad signature fetches nothing")
}

// TestBackgroundRefresh: a key that the provider took away ends without any
// verification that fails first.
func TestBackgroundRefresh(t *testing.T) {
	old := edSigner(t, "old")
	p := newProvider(t, sends(document(t, old)))
	r := newRig(t, trusting(p.URL), func(c *Config) { c.JWKSRefresh, c.JWKSRetry = time.Millisecond, time.Millisecond })
	token := r.by(t, old, nil)
	_, err := r.Verify(token)
	require.NoError(t, err)
	p.serve(sends(document(t)))
	require.Eventually(t, func() bool { _, err := r.Verify(token); return err != nil }, 20*time.Second, time.Millisecond)
}

// TestAFailedFetchLeavesTheKeys goes through the ways in which an endpoint fails.
func TestAFailedFetchLeavesTheKeys(t *testing.T) {
	signer := edSigner(t, "k")
	good := document(t, signer)
	stranger := sends(document(t, edSigner(t, "other")))
	elsewhere := newProvider(t, stranger)
	tests := map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"404":           {fails(http.StatusNotFound), "status is 404"},
		"500":           {fails(http.StatusInternalServerError), "status is 500"},
		"204":           {fails(http.StatusNoContent), "status is 204"},
		"not JSON":      {sends([]byte("<html>")), "not a JWKS"},
		"no keys":       {sends([]byte("{}")), "not a JWKS"},
		"too large":     {sends(append([]byte(strings.Repeat(" ", maxKeyset)), good...)), "larger than"},
		"cut off":       {func(_ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"endless loop":  {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) }, "more than three redirects"},
		"hangs":         {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
		"drips":         {drip, "deadline exceeded"},
		"other, is new": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log logbook
			p := newProvider(t, sends(good))
			r := newRig(t, trusting(p.URL), slowly, func(c *Config) {
				c.Logger, c.JWKSTimeout = log.logger(), time.Minute
			})
			token := r.by(t, signer, nil)
			_, err := r.Verify(token)
			require.NoError(t, err)
			p.serve(tt.answer)
			if tt.says == "deadline exceeded" {
				r.foreign.Load().keys.(*jwksURL).timeout = 200 * time.Millisecond // nothing else is to meet it
			}
			_, err = r.Verify(r.by(t, edSigner(t, "unknown"), nil))
			requireKind(t, KindUnauthenticated, err)
			if tt.says == "" {
				_, err = r.Verify(token)
				requireKind(t, KindUnauthenticated, err)
				return
			}
			require.Contains(t, log.String(), tt.says)
			_, err = r.Verify(token)
			require.NoError(t, err, "remembered")
			_, err = r.Verify(r.by(t, signer, map[string]any{"sub": "other"}))
			require.NoError(t, err, "fresh")
		})
	}
}

func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// TestAProviderThatIsDownAtTheStart: the daemon's own tokens are good, the
// provider's become good when it comes up, by the background's own retry.
func TestAProviderThatIsDownAtTheStart(t *testing.T) {
	var log logbook
	signer := edSigner(t, "k")
	p := newProvider(t, fails(http.StatusServiceUnavailable))
	target := strings.Replace(p.URL, "http://", "http://user:s3cr3t@", 1)
	r := newRig(t, trusting(target), func(c *Config) {
		c.Logger, c.JWKSRefresh, c.JWKSRetry = log.logger(), time.Hour, time.Millisecond
	})
	own, _, err := r.Mint(Claims{Session: "s1"}, time.Hour)
	require.NoError(t, err)
	_, err = r.Verify(own)
	require.NoError(t, err)
	p.serve(sends(document(t, signer)))
	token := r.by(t, signer, nil)
	require.Eventually(t, func() bool { return len(r.foreign.Load().keys.keys().byID) == 1 }, 20*time.Second, time.Millisecond)
	_, err = r.Verify(token)
	require.NoError(t, err)
	require.Contains(t, log.String(), "status is 503")
	require.NotContains(t, log.String(), "s3cr3t")
}

// TestCloseDuringAFetch: Close doesn't wait for the provider, and whoever waits
// for the fetch is released.
func TestCloseDuringAFetch(t *testing.T) {
	p := newProvider(t, sends(document(t, edSigner(t, "k"))))
	r := newRig(t, trusting(p.URL), slowly, func(c *Config) { c.JWKSTimeout = time.Hour })
	entered := make(chan struct{})
	p.serve(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	token := r.by(t, edSigner(t, "unknown"), nil)
	result := make(chan error, 1)
	go func() {
		_, err := r.Verify(token)
		result <- err
	}()
	<-entered
	require.NoError(t, r.Close())
	requireKind(t, KindUnauthenticated, <-result)
}

// TestAWaitForAFetchEndsWithItsRequest: a caller that leaves isn't held, and the
// fetch goes on for the others.
func TestAWaitForAFetchEndsWithItsRequest(t *testing.T) {
	fresh := edSigner(t, "new")
	p := newProvider(t, sends(document(t, edSigner(t, "k"))))
	r := newRig(t, trusting(p.URL), slowly, func(c *Config) { c.JWKSTimeout = time.Minute })
	entered, release := make(chan struct{}), make(chan struct{})
	p.serve(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		sends(document(t, fresh))(w, nil)
	})
	req := httptest.NewRequest(http.MethodGet, "/tasks", nil)
	req.Header.Set("Authorization", "Bearer "+r.by(t, fresh, nil))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := r.Authenticate(req.WithContext(ctx))
		result <- err
	}()
	<-entered
	cancel()
	requireKind(t, KindUnauthenticated, <-result)
	close(release)
	require.Eventually(t, func() bool { _, err := r.Authenticate(req); return err == nil }, 20*time.Second, time.Millisecond)
}

func TestPauseBetweenFetches(t *testing.T) {
	j := &jwksURL{refresh: time.Minute, retry: 10 * time.Second}
	bad := errNoKey
	require.Equal(t, time.Minute, j.pause(0, nil))
	wait := time.Duration(0)
	for _, want := range []int{10, 20, 40, 60} {
		wait = j.pause(wait, bad)
		require.InDelta(t, want, wait.Seconds(), 0)
	}
	require.Equal(t, time.Minute, j.pause(wait, nil))
	require.Equal(t, 10*time.Second, j.pause(time.Minute, bad), "the first failure after a good fetch")
}

func TestRedirectsDoNotLeaveHTTPS(t *testing.T) {
	check := fetcher(time.Second).CheckRedirect
	at := func(url string) *http.Request { return httptest.NewRequest(http.MethodGet, url, nil) }
	secure, plain := at("https://id.example/"), at("http://id.example/")
	require.Error(t, check(plain, []*http.Request{secure}))
	require.NoError(t, check(secure, []*http.Request{secure}))
	require.NoError(t, check(secure, []*http.Request{plain}))
}
