package api

import (
	"net/http"
	"strconv"
	"time"

	"afoot/api/wire"
)

// write answers the problem as RFC 9457 says.
func (p problem) write(c *call, r *http.Request) {
	h := c.Header()
	// Headers of an answer that did not come to be would lie about this one.
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition", "ETag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store")
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if p.retryAfter > 0 {
		seconds := (p.retryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	body := encode(wire.Problem{
		Type:      "urn:afoot:problem:" + string(p.code),
		Title:     p.title,
		Status:    p.status,
		Detail:    p.detail,
		Code:      wire.ErrorCode(p.code),
		RequestId: c.id,
		Limit:     p.limit,
	})
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		_, _ = c.Write(body)
	}
}
