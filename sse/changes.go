package sse

import (
	"encoding/json"
	"slices"
	"time"
)

// maxChangedAgents is how many agents are told apart in one round of changes.
const maxChangedAgents = 8

// anyAgent is the round of changes that may concern every agent.
func anyAgent() []string { return []string{""} }

// window gathers the agents whose tasks changed. The zero window is closed: no
// timer is running for it.
type window struct {
	open   bool
	agents []string
}

func (w *window) add(agents ...string) {
	for _, a := range agents {
		if a == "" || len(w.agents) == maxChangedAgents && !slices.Contains(w.agents, a) {
			w.agents = anyAgent()
			return
		}
		if !slices.Contains(w.agents, a) && !slices.Contains(w.agents, "") {
			w.agents = append(w.agents, a)
		}
	}
}

// take closes the window and gives what it gathered, not to be changed.
func (w *window) take() []string {
	agents := w.agents
	*w = window{}
	return agents
}

// Poke says that tasks of an agent changed, or with an empty agent any tasks of
// the session. Its streams carry one tasks.changed per agent and coalescing time.
func (h *Hub) Poke(sessionID, agent string) {
	if sessionID == "" {
		return
	}
	s := h.lookup(sessionID)
	if s == nil {
		return
	}
	defer h.release(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == 0 {
		return
	}
	s.changes.add(agent)
	if !s.changes.open {
		s.changes.open = true
		time.AfterFunc(h.cfg.Coalesce, func() { h.spread(sessionID) })
	}
}

// spread ends the window of a session.
func (h *Hub) spread(sessionID string) {
	s := h.lookup(sessionID)
	if s == nil {
		return
	}
	defer h.release(s)
	s.mu.Lock()
	agents, streams := s.changes.take(), s.streams
	for _, c := range streams {
		c.changedLocked(agents)
	}
	s.mu.Unlock()
	for _, c := range streams {
		c.step()
	}
}

// PokeAll says that tasks changed that every caller may see. It is [Hub.Poke] for
// all sessions, and for streams without a session.
func (h *Hub) PokeAll(agent string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) == 0 {
		return
	}
	h.changes.add(agent)
	if !h.changes.open {
		h.changes.open = true
		time.AfterFunc(h.cfg.Coalesce, h.spreadAll)
	}
}

func (h *Hub) spreadAll() {
	h.mu.Lock()
	agents := h.changes.take()
	h.mu.Unlock()
	for _, c := range h.allStreams() {
		s := c.session
		s.mu.Lock()
		if s.changes.open {
			s.changes.add(agents...) // one event soon, not one now and one soon
		} else {
			c.changedLocked(agents)
		}
		s.mu.Unlock()
		c.step()
	}
}

// changedLocked notes a round of changes. While an earlier one is still waiting,
// the stream is slow, and one event that says "anything" takes the place of both.
func (c *stream) changedLocked(agents []string) {
	filter := c.cursor.agent
	switch {
	case len(agents) == 0:
		return
	case filter == "" || slices.Contains(agents, ""):
	case slices.Contains(agents, filter):
		agents = []string{filter}
	default:
		return
	}
	if len(c.changed) > 0 && !slices.Equal(c.changed, agents) {
		agents = anyAgent()
	}
	c.changed = agents
}

// changedData is the data of a tasks.changed event.
func changedData(agent string) []byte {
	data, err := json.Marshal(struct {
		Agent string `json:"agent,omitempty"`
	}{agent})
	if err != nil { // strings always marshal
		return []byte("{}")
	}
	return data
}
