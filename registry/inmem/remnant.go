package inmem

import (
	"io"

	"afoot/registry"
)

// remnant is an ended output of which less is left than somebody was told: after the
// loss of power, or when its store can't give it back. What is missing at its end
// counts as dropped, so that no offset that was shown goes back.
type remnant struct {
	left registry.Stream // nil: nothing
	told int64
}

// mend makes sure that the restored streams reach what was told and read.
func (r *record) mend() {
	missing := r.snap.OutputBytes
	var told cursors
	streams := r.streams()
	for i, stream := range streams {
		if stream != nil {
			written, _ := stream.Size()
			told[i] = max(written, r.cursors[i])
			missing -= told[i]
		}
	}
	told[stdout] += max(0, missing)
	whole := true
	for i, stream := range streams {
		if stream == nil {
			continue
		}
		if written, _ := stream.Size(); written < told[i] {
			streams[i], whole = &remnant{left: stream, told: told[i]}, false
		}
	}
	if !whole {
		r.source = &source{streams: streams}
	}
}

// Size implements [registry.Stream].
func (m *remnant) Size() (written, dropped int64) {
	left, dropped := m.bounds()
	return m.told, dropped + m.told - left
}

func (m *remnant) bounds() (left, dropped int64) {
	if m.left == nil {
		return 0, 0
	}
	return m.left.Size()
}

// Page implements [registry.Stream].
func (m *remnant) Page(offset, limit int64) (registry.Page, error) {
	left, _ := m.bounds()
	_, dropped := m.Size()
	if offset > m.told {
		return registry.Page{}, registry.Errorf(registry.CodeInvalid, "offset %d lies beyond the output of %d bytes", offset, m.told)
	}
	if offset >= left {
		return registry.Page{Offset: m.told, NextOffset: m.told, Dropped: dropped, End: true}, nil
	}
	page, err := m.left.Page(offset, limit)
	page.End, page.Dropped = false, dropped
	return page, err
}

// Grown implements [registry.Stream].
func (*remnant) Grown(int64) <-chan struct{} { return closedChan() }

// Open implements [registry.Stream].
func (m *remnant) Open() (registry.RawLog, error) {
	if m.left == nil {
		return emptyLog{at: m.told}, nil
	}
	return m.left.Open()
}

// emptyLog is the raw log of an output of which nothing is left.
type emptyLog struct{ at int64 }

func (emptyLog) ReadAt([]byte, int64) (int, error)         { return 0, io.EOF }
func (emptyLog) Close() error                              { return nil }
func (l emptyLog) Bounds() (first, next int64, ended bool) { return l.at, l.at, true }
func (emptyLog) Grown(int64) <-chan struct{}               { return closedChan() }
