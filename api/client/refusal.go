package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxProblem bounds what is read of a refusal.
const maxProblem = 64 << 10

// RefusalError is a daemon's problem as an error.
type RefusalError struct {
	Problem
	// RetryAfter is how long to wait before another attempt; zero if unknown. Again says
	// that the daemon named it.
	RetryAfter time.Duration
	Again      bool
}

// Error gives the detail and the code.
func (r *RefusalError) Error() string {
	if r.Code == ErrorCodeInternal {
		return fmt.Sprintf("%s (request %s)", r.Detail, r.RequestId)
	}
	return fmt.Sprintf("%s (%s)", r.Detail, r.Code)
}

// Temporary reports whether the same request may succeed later.
func (r *RefusalError) Temporary() bool {
	return r.Status >= http.StatusInternalServerError || r.Status == http.StatusTooManyRequests
}

// Check gives a success back, whose body the caller closes. Of everything else it
// closes the body and makes an error, a [*RefusalError] if the daemon answered.
func Check(res *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if res.StatusCode < http.StatusMultipleChoices {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	if err != nil {
		return nil, fmt.Errorf("read the answer %s: %w", res.Status, err)
	}
	refusal := &RefusalError{}
	refusal.RetryAfter, refusal.Again = retryAfter(res.Header)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(body, &refusal.Problem) != nil {
		refusal.Problem = Problem{
			Status: res.StatusCode, Title: res.Status, Code: ErrorCodeInternal,
			Detail: fmt.Sprintf("the server answered %s, not as Afoot does", res.Status), RequestId: res.Header.Get("X-Request-Id"),
		}
	}
	return nil, refusal
}

func retryAfter(h http.Header) (pause time.Duration, named bool) {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}
