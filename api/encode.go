package api

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/go-chi/render"
)

// reply answers a JSON document that commits nothing.
func reply(c *call, r *http.Request, status int, v any) error {
	render.Status(r, status)
	render.JSON(c, r, v)
	return nil
}

// encode gives compact JSON. Wire types always marshal.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
