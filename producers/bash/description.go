package bash

import (
	"bytes"
	"unique"
)

// description is a request as JSON. All but the command is the same in most requests,
// and is kept once for all that have it.
type description struct {
	// command is the command as JSON. Without rest it is the whole description, and
	// empty there is none.
	command string
	rest    unique.Handle[string]
}

// describedCommand is how a description begins.
const describedCommand = `{"command":`

// newDescription takes a description apart.
func newDescription(whole []byte) description {
	text, ok := bytes.CutPrefix(whole, []byte(describedCommand))
	if !ok || len(text) == 0 || text[0] != '"' {
		return description{command: string(whole)} // of another version, or none
	}
	end := 1
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(text) {
		return description{command: string(whole)}
	}
	return description{command: string(text[:end+1]), rest: unique.Make(string(text[end+1:]))}
}

func (d description) none() bool { return d.command == "" }

// alone says that command is the whole.
func (d description) alone() bool { return d.rest == unique.Handle[string]{} }

func (d description) size() int {
	if d.alone() {
		return len(d.command)
	}
	return len(describedCommand) + len(d.command) + len(d.rest.Value())
}

func (d description) appendTo(text []byte) []byte {
	if d.alone() {
		return append(text, d.command...)
	}
	return append(append(append(text, describedCommand...), d.command...), d.rest.Value()...)
}

// json gives the whole, which is the caller's; nil for none.
func (d description) json() []byte {
	if d.none() {
		return nil
	}
	return d.appendTo(make([]byte, 0, d.size()))
}
