package inmem

import (
	"slices"

	"afoot/registry"
)

// attachments are what is plugged in. A detach names its plug by identity, so
// that equal names and replaced producers stay apart.
type attachments struct {
	controllers []*controller
	listeners   []*listener
	producers   map[registry.Kind]*producer
}

type controller struct {
	name  string
	scope registry.Scope
}

type producer struct{ registry.Producer }

// listener hears of changes or of ends: one of the two functions is set.
type listener struct {
	scope   registry.Scope
	done    func(registry.Notice)
	changed func(registry.Change)
}

func newAttachments() attachments {
	return attachments{producers: map[registry.Kind]*producer{}}
}

func (a *attachments) servedLocked(owner registry.Owner) bool {
	return slices.ContainsFunc(a.controllers, func(c *controller) bool { return c.scope.Covers(owner) })
}

func (a *attachments) hearingLocked(e *event, owner registry.Owner) []*listener {
	var out []*listener
	for _, l := range a.listeners {
		if (l.done != nil) == e.notice && l.scope.Covers(owner) {
			out = append(out, l)
		}
	}
	return out
}

// AttachController implements [registry.Attachments].
func (s *Service) AttachController(name string, scope registry.Scope) func() {
	c := &controller{name: name, scope: scope}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plugs.controllers = append(s.plugs.controllers, c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.plugs.controllers = without(s.plugs.controllers, c)
	}
}

// AttachProducer implements [registry.Attachments].
func (s *Service) AttachProducer(kind registry.Kind, p registry.Producer) func() {
	mine := &producer{p}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plugs.producers[kind] = mine
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.plugs.producers[kind] == mine {
			delete(s.plugs.producers, kind)
		}
	}
}

// OnDone implements [registry.Attachments].
func (s *Service) OnDone(scope registry.Scope, hear func(registry.Notice)) func() {
	return s.listen(&listener{scope: scope, done: hear})
}

// OnChange implements [registry.Attachments].
func (s *Service) OnChange(scope registry.Scope, hear func(registry.Change)) func() {
	return s.listen(&listener{scope: scope, changed: hear})
}

func (s *Service) listen(l *listener) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plugs.listeners = append(s.plugs.listeners, l)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.plugs.listeners = without(s.plugs.listeners, l)
	}
}

// without copies: a listener list may be in use by a dispatch.
func without[T comparable](all []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return x == one })
}
