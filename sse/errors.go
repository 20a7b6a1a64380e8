package sse

import "errors"

// Refusals of [Hub.Serve] and [Hub.OpenFeed]. Nothing was written when one is returned.
var (
	// ErrTooManyStreams says that the session has all the streams it may have.
	ErrTooManyStreams = errors.New("sse: the session has too many open streams")
	// ErrClosed says that the hub was closed.
	ErrClosed = errors.New("sse: the hub is closed")
	// ErrNotStreaming says that the response writer, or one that it unwraps to,
	// cannot report a failed flush or take a write deadline.
	ErrNotStreaming = errors.New("sse: the response writer cannot stream")
)

// Reasons in the data of a bye event. The reason given to [Hub.Close] is one more.
const (
	ByeTokenExpired = "token_expired"
	ByeShutdown     = "shutdown"
	ByeReload       = "reload"
	ByeLagged       = "lagged"
	// ByeGone: what a feed is about was removed.
	ByeGone = "gone"
)

// Reasons in the data of a gap event.
const (
	// GapEvicted: notices after the given id are no longer kept.
	GapEvicted = "evicted"
	// GapAhead: the number is beyond the newest notice of the session.
	GapAhead = "ahead"
	// GapOtherEpoch: the id was made by another life of the daemon's state.
	GapOtherEpoch = "other_epoch"
	// GapNotAnID: no id of a notice looks like that.
	GapNotAnID = "not_an_id"
	// GapUndelivered: notices that no stream had carried yet had to be given up.
	GapUndelivered = "undelivered"
)
