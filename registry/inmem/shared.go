package inmem

import (
	"encoding/json"

	"afoot/registry"
)

// shared has what many records have in common, so that each of it is kept once.
type shared struct {
	texts   map[string]string
	results map[string]json.RawMessage
}

func newShared() shared {
	return shared{texts: map[string]string{}, results: map[string]json.RawMessage{}}
}

// facts gives a snapshot the kind, detail and result of another that has the same.
func (s shared) facts(snap *registry.Snapshot) {
	snap.Kind = registry.Kind(s.text(string(snap.Kind)))
	snap.Detail = s.text(snap.Detail)
	if snap.Result == nil {
		return
	}
	if known, found := s.results[string(snap.Result)]; found {
		snap.Result = known
	} else {
		s.results[string(snap.Result)] = snap.Result
	}
}

func (s shared) text(text string) string {
	if known, found := s.texts[text]; found {
		return known
	}
	s.texts[text] = text
	return text
}
