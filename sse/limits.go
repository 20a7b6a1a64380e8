package sse

// SetMaxStreamsPerSession changes the bound of a session's streams; zero means the
// default of [Config]. Those that are open stay.
func (h *Hub) SetMaxStreamsPerSession(most int) {
	h.maxStreams.Store(int64(Config{MaxStreamsPerSession: most}.withDefaults().MaxStreamsPerSession))
}
