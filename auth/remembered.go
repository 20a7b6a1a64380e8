package auth

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// remembered holds the principals of verified tokens, the least recently used
// going first, bounded in number and in bytes of token. A hit allocates nothing.
// An entry is only as good as its key and its exp, both checked at each hit.
type remembered struct {
	maxBytes int

	mu    sync.Mutex
	bytes int
	lru   *simplelru.LRU[string, Principal]
}

func newRemembered(maxTokens, maxBytes int) *remembered {
	r := &remembered{maxBytes: maxBytes}
	// The only error is a size that isn't positive, which Config has excluded.
	r.lru, _ = simplelru.NewLRU(maxTokens, func(token string, _ Principal) { r.bytes -= len(token) })
	return r
}

func (r *remembered) get(token string, now time.Time) (Principal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.lru.Get(token)
	if !ok {
		return Principal{}, false
	}
	p, live := p.at(now)
	if !live {
		r.lru.Remove(token)
	}
	return p, live
}

func (r *remembered) put(token string, p Principal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lru.Contains(token) {
		return // A twin was faster; both proved the same.
	}
	token = strings.Clone(token) // It may be part of something larger.
	r.bytes += len(token)
	r.lru.Add(token, p)
	for r.bytes > r.maxBytes && r.lru.Len() > 0 {
		r.lru.RemoveOldest()
	}
}
