package tools

import "github.com/google/jsonschema-go/jsonschema"

// Definition is what a model and its client learn of a tool. It is shared: nobody
// changes it.
type Definition struct {
	Name        string
	Title       string
	Description string
	// Input and Output are schemas of objects: of the arguments, and of [Answer.Value].
	Input, Output *jsonschema.Schema
	// What a client may show or ask before a call.
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Definitions gives the tools of a caller: those that only look, and with writes the
// others too.
func (s *Set) Definitions(writes bool) []Definition {
	var visible []Definition
	for _, d := range s.definitions {
		if writes || d.ReadOnly {
			visible = append(visible, d)
		}
	}
	return visible
}

func define(background bool) ([]Definition, error) {
	_ = background
	return nil, nil
}
