package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// jwksURL is a key set behind a URL. Its goroutine does all fetching: at
// intervals, and when a token names an unknown key. The last good set stays
// until a newer one was read whole.
type jwksURL struct {
	url     *url.URL
	client  *http.Client
	refresh time.Duration
	retry   time.Duration
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger

	ring atomic.Pointer[keyring]

	ctx    context.Context //nolint:containedctx // the life of the goroutine and of the first fetch
	cancel context.CancelFunc
	begun  bool          // the goroutine runs; close comes after
	first  error         // what the first fetch came to
	asked  chan struct{} // capacity 1: a fetch is wanted now
	done   chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	allow  *rate.Limiter // fetches that unknown keys may cause
	flight chan struct{} // closed at the end of the fetch that is due or under way; nil without one
}

// openJWKSURL makes the first fetch before it returns; its failure is logged, and
// the goroutine, which begin starts, goes on trying.
func openJWKSURL(cfg Config, u *url.URL) *jwksURL {
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		cfg.Logger.Warn("JWKS comes over plain HTTP: whoever is on its way can change the keys", logSource, u.Redacted())
	}
	ctx, cancel := context.WithCancel(context.Background())
	j := &jwksURL{
		url:     u,
		client:  fetcher(cfg.JWKSTimeout),
		refresh: cfg.JWKSRefresh,
		retry:   cfg.JWKSRetry,
		timeout: cfg.JWKSTimeout,
		now:     cfg.Now,
		log:     cfg.Logger,
		ctx:     ctx,
		cancel:  cancel,
		asked:   make(chan struct{}, 1),
		done:    make(chan struct{}),
		allow:   rate.NewLimiter(rate.Every(cfg.JWKSRetry), 1),
	}
	none, _ := parseKeyset([]byte(`{"keys":[]}`), "", cfg.Logger)
	j.ring.Store(none)
	j.first = j.fetch(ctx)
	return j
}

func (j *jwksURL) begin() {
	j.begun = true
	go j.run(j.ctx, j.first)
}

func (j *jwksURL) keys() *keyring { return j.ring.Load() }

func (j *jwksURL) poll(time.Time) {}

// missed joins the fetch that is under way or due, or causes one if unknown keys
// have not caused one lately. A token with a bad signature causes none.
func (j *jwksURL) missed(ctx context.Context, now time.Time, err error) {
	if !errors.Is(err, errNoKey) {
		return
	}
	j.mu.Lock()
	if j.flight == nil && j.allow.AllowN(now, 1) {
		j.flight = make(chan struct{})
		select {
		case j.asked <- struct{}{}:
		default: // An earlier ask is still to be answered by a fetch.
		}
	}
	flight := j.flight
	j.mu.Unlock()
	if flight == nil {
		return
	}
	select {
	case <-flight:
	case <-ctx.Done():
	case <-j.done:
	}
}

func (j *jwksURL) close() {
	j.cancel()
	if j.begun {
		<-j.done
	}
}

func (j *jwksURL) run(ctx context.Context, last error) {
	defer close(j.done)
	wait := j.pause(0, last)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-j.asked:
		}
		j.takeOff()
		wait = j.pause(wait, j.fetch(ctx))
		j.land()
		timer.Reset(wait)
	}
}

// pause is the time to the next fetch: the interval after a good one; after a
// failed one the retry time, doubled each time up to the interval and then from
// its beginning again.
func (j *jwksURL) pause(before time.Duration, err error) time.Duration {
	if err == nil {
		return j.refresh
	}
	if before == 0 || before >= j.refresh {
		return min(j.retry, j.refresh)
	}
	return min(2*before, j.refresh)
}

func (j *jwksURL) takeOff() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flight == nil {
		j.flight = make(chan struct{})
	}
}

func (j *jwksURL) land() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.flight)
	j.flight = nil
}

// fetch replaces the keys, or logs why it didn't.
func (j *jwksURL) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	source := j.url.Redacted()
	data, err := j.get(ctx)
	var next *keyring
	if err == nil {
		next, err = parseKeyset(data, source, j.log)
	}
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			j.log.Warn("JWKS can't be fetched; the keys that are known stay", logSource, source, logError, err)
		}
		return err
	}
	if len(next.byID) == 0 {
		j.log.Warn("JWKS has no usable key: only the daemon's own tokens are good", logSource, source)
	}
	succeed(j.ring.Load(), next, j.now())
	j.ring.Store(next)
	j.log.Debug("JWKS fetched", logSource, source, logKeys, len(next.byID))
	return nil
}

func (j *jwksURL) get(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	req.Header.Set("User-Agent", "afoot")
	res, err := j.client.Do(req)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err // Without the URL: it may hold a password.
		}
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer's status is %d", res.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxKeyset+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxKeyset {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxKeyset)
	}
	return data, nil
}

// fetcher is a client whose every step is bounded and that leaves no connection
// behind. A redirect must not leave https.
func fetcher(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 3 {
				return errors.New("there are more than three redirects")
			}
			if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
				return errors.New("a redirect leaves https")
			}
			return nil
		},
	}
}
