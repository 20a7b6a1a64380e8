package bash

import (
	"errors"

	"afoot/producers/output"
	"afoot/registry"
)

// stream is a log as the registry reads it.
type stream struct{ log *output.Log }

// Page implements [registry.Stream].
func (s *stream) Page(offset, limit int64) (registry.Page, error) {
	page, err := s.log.Page(offset, limit)
	if err != nil {
		return registry.Page{}, readError(err)
	}
	return registry.Page(page), nil
}

// Size implements [registry.Stream].
func (s *stream) Size() (written, dropped int64) { return s.log.Size() }

// Grown implements [registry.Stream].
func (s *stream) Grown(offset int64) <-chan struct{} { return s.log.Grown(offset) }

// Open implements [registry.Stream].
func (s *stream) Open() (registry.RawLog, error) {
	reader, err := s.log.Open()
	if err != nil {
		return nil, readError(err)
	}
	return reader, nil
}

// readError words an error of the store for the caller.
func readError(err error) error {
	switch {
	case errors.Is(err, output.ErrBeyond):
		return invalid("%s", err)
	case errors.Is(err, output.ErrDamaged):
		return registry.Wrap(registry.CodeInternal, err, "%s", output.ErrDamaged)
	default:
		return refusal(err, "the output can't be read")
	}
}
