package client

import (
	"context"
	"net/http"
)

// Repeatable is a [RequestEditorFn] for a call that may come twice. [http.Transport] then
// sends it again by itself when a kept connection was closed under it, as a daemon does that
// is being replaced. Nothing of this is on the wire.
func Repeatable(_ context.Context, req *http.Request) error {
	req.Header["X-Idempotency-Key"] = []string{} // so documented there
	return nil
}
