package main

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// replacePatience is how long a request comes again to a daemon that is being replaced.
const replacePatience = 10 * time.Second

// comeAgain sends a request again that a daemon refused because it is being replaced: it has
// begun nothing, and says when to come.
type comeAgain struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (c comeAgain) RoundTrip(req *http.Request) (*http.Response, error) {
	for begun := time.Now(); ; {
		res, err := c.base.RoundTrip(req)
		if err != nil || req.Body != nil && req.GetBody == nil {
			return res, err
		}
		pause, again := askedAgain(res)
		if !again || time.Since(begun)+pause > replacePatience {
			return res, nil
		}
		_ = res.Body.Close()
		select {
		case <-time.After(max(pause, replacePatience/100)):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		next := req.Clone(req.Context())
		if req.GetBody != nil {
			if next.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		req = next
	}
}

// askedAgain reports whether an answer is Afoot's 503 that says when to come again.
func askedAgain(res *http.Response) (pause time.Duration, again bool) {
	if res.StatusCode != http.StatusServiceUnavailable || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		return 0, false
	}
	seconds, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 16)
	return time.Duration(seconds) * time.Second, err == nil
}
