package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Bounds of the pause between two attempts.
const (
	minPause = 100 * time.Millisecond
	maxPause = 10 * time.Second
)

// backoff grows the pause from attempt to attempt.
type backoff struct {
	next time.Duration
	// told hears of each failed attempt and the pause before the next; it may be nil.
	told func(err error, pause time.Duration)
}

// again waits before another attempt. It gives the error that ends all attempts:
// err itself if trying again is of no use, or ctx's.
func (b *backoff) again(ctx context.Context, err error) error {
	var refusal *RefusalError
	if errors.As(err, &refusal) && !refusal.Temporary() || errors.Is(err, errOversized) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.next = min(max(b.next*2, minPause), maxPause)
	pause := b.next/2 + rand.N(b.next/2) //nolint:gosec // to spread attempts, not to hide them
	if refusal != nil {
		pause = max(pause, min(refusal.RetryAfter, time.Minute))
	}
	if b.told != nil {
		b.told(err, pause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// worked makes the next pause the shortest one.
func (b *backoff) worked() { b.next = 0 }
