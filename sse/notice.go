package sse

import (
	"bytes"
	"strings"
)

// Notice is one event for a session. The hub keeps Data: it must not be changed
// after it was handed over.
type Notice struct {
	// Key names what the notice is about; [Hub.Withdraw] takes it back by this.
	Key string
	// Owner is the exact identity that is told; [Hub.DropOwner] compares it.
	Owner string
	// Agent is what a stream's filter compares.
	Agent string
	// Event is the SSE event type, without line breaks.
	Event string
	// Data should be compact JSON. Every line break in it, a bare carriage return
	// too, arrives as a line feed: the wire knows no other.
	Data []byte
}

// normal makes a notice fit for the wire. Empty data would never be dispatched
// by a client, and would end the package's loop.
func (n Notice) normal() Notice {
	if i := strings.IndexAny(n.Event, "\r\n"); i >= 0 {
		n.Event = n.Event[:i]
	}
	if len(n.Data) == 0 {
		n.Data = []byte("{}")
	}
	if bytes.IndexByte(n.Data, '\r') >= 0 {
		n.Data = bytes.ReplaceAll(n.Data, []byte("\r\n"), []byte("\n"))
		n.Data = bytes.ReplaceAll(n.Data, []byte("\r"), []byte("\n"))
	}
	return n
}
