package api

import (
	"mime"
	"strconv"
	"strings"
)

// wantsText reports whether an Accept header prefers text/plain to JSON. Named
// types go before wildcards; JSON is the answer when both are as good.
func wantsText(accept []string) bool {
	text, json, others := 0.0, 0.0, 0.0
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil {
				continue
			}
			q := quality(params["q"])
			switch media {
			case "text/plain", "text/*":
				text = max(text, q)
			case "application/json":
				json = max(json, q)
			case "application/*", "*/*":
				others = max(others, q)
			}
		}
	}
	return text > 0 && text > json && text >= others
}

func quality(q string) float64 {
	if q == "" {
		return 1
	}
	f, err := strconv.ParseFloat(q, 64)
	if err != nil || f < 0 || f > 1 {
		return 0
	}
	return f
}
