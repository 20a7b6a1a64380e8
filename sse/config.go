package sse

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"strings"
	"time"
)

// Config shapes a [Hub]. Every zero value means its default.
type Config struct {
	// Epoch is the first part of every id: at most 64 letters, digits and '-'. It
	// must live as long as the numbers do. Default: that of the journal, and without
	// one (and in place of one that cannot stand in an id): random, so that ids of
	// earlier hubs are seen to be foreign.
	Epoch string
	// Heartbeat is the longest silence of a stream; comments are sent a little more
	// often. Default 15 s.
	Heartbeat time.Duration
	// WriteTimeout is how long one event may take to leave; then the stream is cut.
	// Default 10 s.
	WriteTimeout time.Duration
	// LogSize and LogAge bound what a session's log keeps of delivered notices: in
	// entries (default 1000), and in time since the first delivery (default 24 h).
	LogSize int
	LogAge  time.Duration
	// LogMax bounds a log with all that is still to be carried: what is pending, and
	// what an open stream has not come to yet. Default 16 times LogSize.
	LogMax int
	// MaxStreamsPerSession bounds open streams. Default 16.
	MaxStreamsPerSession int
	// Coalesce is how long changes are gathered into one event. Default 100 ms.
	Coalesce time.Duration
	// Journal, when not nil, keeps the notices, their numbers and the epoch; see
	// [OpenHub]. It must outlive the hub.
	Journal Journal
	// Logger takes the lives of streams at debug and cuts at info. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.LogSize = cmp.Or(c.LogSize, 1000)
	c.LogMax = max(c.LogSize, cmp.Or(c.LogMax, 16*c.LogSize))
	c.LogAge = cmp.Or(c.LogAge, 24*time.Hour)
	c.MaxStreamsPerSession = cmp.Or(c.MaxStreamsPerSession, 16)
	c.Coalesce = cmp.Or(c.Coalesce, 100*time.Millisecond)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if !usableEpoch(c.Epoch) {
		if c.Epoch != "" {
			c.Logger.Warn("the epoch of event ids is unusable, a random one is taken")
		}
		c.Epoch = strings.ToLower(rand.Text())
	}
	return c
}

// beat is the time between two heartbeats: early enough that the promise holds
// on a busy machine too.
func (c Config) beat() time.Duration { return c.Heartbeat - c.Heartbeat/16 }

func usableEpoch(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}
