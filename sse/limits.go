package sse

// bucket is the name under which streams are counted: their session, or without one a
// name for their caller that no session has, since those are printable.
func bucket(sessionID, caller string) string {
	if sessionID == "" {
		return "\x00" + caller
	}
	return sessionID
}

// SetMaxStreamsPerSession changes the bound of a session's streams; zero means the
// default of [Config]. Those that are open stay.
func (h *Hub) SetMaxStreamsPerSession(most int) {
	h.maxStreams.Store(int64(Config{MaxStreamsPerSession: most}.withDefaults().MaxStreamsPerSession))
}
