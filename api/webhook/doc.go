// Package webhook posts notices to whom an agent has named: signed by the Standard
// Webhooks scheme, again until the receiver has answered 2xx, and only to hosts that
// the daemon's owner has listed. It never learns what a task is.
//
// A [Poster] keeps per agent ([Owner]) its webhooks, and per webhook the notices that
// are still to be posted to it, in a [Journal] if it has one. Each webhook is on its
// own: one post of it is under way at a time, and a notice that fails waits for its
// next turn while others go. A session has a part of the places for posts only, so that
// receivers that do not answer hold nobody else up.
//
// Budget: the first post of a notice takes one from its agent's budget, posts to the
// agent's other webhooks and repeated ones take none, and [Poster.Called] gives all
// of it back. Without it two machines could wake each other for ever.
//
// Delivery is at least once: who dies between an answer and its row posts again, under
// the same message id. What was given to [Poster.Notice] once is not taken again while
// it is pending anywhere.
//
// Security: the address that is really connected to is checked, after the name was
// resolved and for each connection, of which none is used twice. Redirects are an answer
// like any other that is not 2xx. Proxies are not used. Secrets are in the journal and
// in memory, and in nothing that is said.
//
// No method blocks on a receiver but Pause and Close; Add and Remove wait for the journal.
package webhook
