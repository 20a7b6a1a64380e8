package inmem

import "time"

// Limits are the bounds of a [Config] that may change while the Service works. Zero
// values take the defaults.
type Limits struct {
	MaxTasksPerOwner, MaxTasks, MaxAgentsPerSession int
	TeardownTimeout                                 time.Duration
	RetainCount                                     int
	RetainAge                                       time.Duration
}

// SetLimits changes the bounds. Work that is over a lower one goes on; ended tasks that
// are over a lower one go at once.
func (s *Service) SetLimits(l Limits) {
	next := Config{
		MaxTasksPerOwner: l.MaxTasksPerOwner, MaxTasks: l.MaxTasks, MaxAgentsPerSession: l.MaxAgentsPerSession,
		TeardownTimeout: l.TeardownTimeout, RetainCount: l.RetainCount, RetainAge: l.RetainAge,
	}.withDefaults()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.MaxTasksPerOwner, s.cfg.MaxTasks, s.cfg.MaxAgentsPerSession = next.MaxTasksPerOwner, next.MaxTasks, next.MaxAgentsPerSession
	s.cfg.TeardownTimeout = next.TeardownTimeout
	s.cfg.RetainCount, s.cfg.RetainAge = next.RetainCount, next.RetainAge
	if s.openLocked() != nil {
		return
	}
	s.keep.over[&s.unowned.ended] = struct{}{}
	for _, mine := range s.sessions {
		for _, a := range mine.agents {
			s.keep.over[&a.ended] = struct{}{}
		}
	}
	s.sweepLocked()
}

// bound bounds the end of tasks from now on.
func (s *Service) bound() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.TeardownTimeout
}
