package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Bounds of an event stream: more is not an event of Afoot.
const (
	maxLine  = 4 << 20
	maxEvent = 8 << 20
)

// errOversized is a stream that no other attempt would make readable.
var errOversized = errors.New("an event is larger than an event of Afoot can be")

// Event is one event of a stream.
type Event struct {
	// ID is empty for events that can't be resumed from.
	ID string
	// Type is task.done, tasks.changed, gap or bye.
	Type string
	Data []byte
}

// eventReader takes a stream of Server-Sent Events apart. Lines end with LF or
// CRLF.
type eventReader struct {
	in *bufio.Reader
}

func newEventReader(r io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(r)} }

// next gives the next whole event; what a stream breaks off in is no event. beat
// is called for each line, whatever it holds.
func (e *eventReader) next(beat func()) (Event, error) {
	var (
		event Event
		data  []byte
		some  bool
	)
	for {
		line, err := e.line()
		if err != nil {
			return Event{}, err
		}
		beat()
		if len(line) == 0 {
			if !some {
				event, data = Event{}, nil // no data: never an event
				continue
			}
			event.Data = bytes.TrimSuffix(data, []byte("\n"))
			if event.Type == "" {
				event.Type = "message"
			}
			return event, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				event.ID = string(value)
			}
		case "event":
			event.Type = string(value)
		case "data":
			some = true
			if len(data)+len(value) > maxEvent {
				return Event{}, fmt.Errorf("%w: over %d bytes of data", errOversized, maxEvent)
			}
			data = append(append(data, value...), '\n')
		}
	}
}

// line gives the next line without its end. A last line without an end was cut.
func (e *eventReader) line() ([]byte, error) {
	var long []byte
	for {
		piece, err := e.in.ReadSlice('\n')
		if err == nil {
			if long != nil {
				piece = append(long, piece...)
			}
			return bytes.TrimSuffix(piece[:len(piece)-1], []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if long = append(long, piece...); len(long) > maxLine {
			return nil, fmt.Errorf("%w: a line of over %d bytes", errOversized, maxLine)
		}
	}
}
