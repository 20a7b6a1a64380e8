// Package auth says who calls: it keeps the keys, checks and makes tokens, turns
// a request into a [Principal], and guards the doors (Host, Origin, CORS).
//
// It knows nothing of tasks, agents or the registry; a Principal is a set of
// proven claims, and what they allow is decided by whoever asks.
//
// # Keys
//
// Two key sources, each with its own algorithms: the daemon's secret file
// (HS256, always) and, when configured, a JWKS file or URL (RS256, ES256,
// EdDSA). A token is only ever tried against the source that its algorithm
// belongs to, so a public key can't pass for a secret. A key is an object with
// an end: rotation and refresh set that end, and everything that was proven by
// the key, remembered tokens and watched principals too, ends with it. One set of keys
// follows another only when nobody refreshes either, so that no refresh of a set that
// is not current ends a key of one that is.
//
// # Order and time
//
// Bounds come before parsing, the signature before the claims, the claims
// before the principal. No leeway is given: a token is good strictly before its
// exp and from its nbf on. Failures are never remembered.
//
// # Goroutines
//
// Only an [Authority] with a JWKS URL owns one (the refresher); Close ends it
// and waits for it. Files are watched by stat when they are needed, at most
// once a second on the fast path; while somebody watches a principal, by a timer.
package auth
