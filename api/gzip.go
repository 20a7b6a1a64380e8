package api

import (
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"strings"
)

// leastGzip is the least log that is compressed.
const leastGzip = 1 << 10

// wantsGzip reports whether an Accept-Encoding header asks for gzip, and does not
// like the bytes as they are better.
func wantsGzip(accept []string) bool {
	zipped, plain, others := -1.0, -1.0, 0.0
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			coding, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil {
				continue
			}
			switch q := quality(params["q"]); coding {
			case "gzip", "x-gzip":
				zipped = max(zipped, q)
			case "identity":
				plain = q
			case "*":
				others = q
			}
		}
	}
	if zipped < 0 {
		zipped = others
	}
	return zipped > 0 && zipped >= plain
}

// compress answers with the whole piece, compressed.
func (p *logPiece) compress(c *call, r *http.Request) error {
	c.Header().Set("Content-Encoding", "gzip")
	c.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	z, _ := c.api.gzips.Get().(*gzip.Writer)
	if z == nil {
		var err error
		if z, err = gzip.NewWriterLevel(c, gzip.BestSpeed); err != nil {
			return err
		}
	} else {
		z.Reset(c)
	}
	defer func() {
		z.Reset(io.Discard) // it shall not hold the call
		c.api.gzips.Put(z)
	}()
	if err := p.copyTo(z, p.end); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return http.ErrAbortHandler
	}
	return nil
}
