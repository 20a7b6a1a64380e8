package inmem

import (
	"context"
	"time"

	"afoot/registry"
)

// keyLife is how long an idempotency key is remembered.
const keyLife = 24 * time.Hour

// keyName is a key within its scope: a session, or the subject of a caller
// without one.
type keyName struct{ session, subject, key string }

// keyed is a start under a key. done is closed when it has ended; id is set if it
// succeeded.
type keyed struct {
	fingerprint [32]byte
	done        chan struct{}
	id          registry.ID
	at          time.Time
}

// idempotency remembers successful starts by key. Guarded by Service.mu.
type idempotency struct {
	byName map[keyName]*keyed
	// order holds the remembered names, oldest first.
	order []keyName
}

func newIdempotency() idempotency { return idempotency{byName: map[keyName]*keyed{}} }

// startOnce is Start under a key: twins wait for the first, a success is
// replayed, a refusal is forgotten.
func (s *Service) startOnce(ctx context.Context, caller registry.Caller, req registry.StartRequest) (registry.Started, error) {
	name := keyName{session: caller.Session, key: req.IdempotencyKey}
	if caller.Session == "" {
		name.subject = req.Subject
	}
	for {
		s.mu.Lock()
		s.expireKeysLocked()
		k := s.keys.byName[name]
		if k == nil {
			k = &keyed{fingerprint: req.Fingerprint, done: make(chan struct{})}
			s.keys.byName[name] = k
			s.mu.Unlock()
			return s.startFirst(ctx, caller, req, name, k)
		}
		id := k.id
		s.mu.Unlock()
		if k.fingerprint != req.Fingerprint {
			return registry.Started{}, registry.Errorf(registry.CodeIdempotencyMismatch, "this idempotency key was used with another request")
		}
		if id != "" {
			snap, err := s.Get(ctx, caller, id)
			return registry.Started{Snapshot: snap, Replayed: true}, err
		}
		select {
		case <-k.done:
		case <-ctx.Done():
			return registry.Started{}, ctx.Err()
		}
	}
}

func (s *Service) startFirst(ctx context.Context, caller registry.Caller, req registry.StartRequest, name keyName, k *keyed) (registry.Started, error) {
	row := registry.KeyRow{Session: name.session, Subject: name.subject, Key: name.key, Fingerprint: req.Fingerprint}
	started, err := s.start(ctx, caller, req, &row)
	s.mu.Lock()
	if err != nil {
		delete(s.keys.byName, name)
	} else {
		k.id, k.at = started.Snapshot.ID, started.Snapshot.StartedAt
		s.keys.order = append(s.keys.order, name)
	}
	s.mu.Unlock()
	close(k.done)
	return started, err
}

func (s *Service) expireKeysLocked() {
	i := &s.keys
	n := 0
	for ; n < len(i.order); n++ {
		name := i.order[n]
		if s.life.age(momentOf(i.byName[name].at)) < keyLife {
			break
		}
		delete(i.byName, name)
		s.appendLocked(registry.KeyGone{Session: name.session, Subject: name.subject, Key: name.key})
	}
	i.order = i.order[n:]
}
