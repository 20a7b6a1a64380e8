package registrytest

import (
	"errors"
	"io"
	"sync"

	"afoot/registry"
)

// Output is a [registry.Stream] in memory that its case appends to, cuts at the
// head and ends. It keeps every promise of the interface.
type Output struct {
	mu      sync.Mutex
	kept    []byte
	dropped int64
	ended   bool
	waiting []growth
	widest  int64
	open    int
	lost    error
	onPage  func()
}

// growth is one caller of Grown that still waits.
type growth struct {
	offset int64
	closed chan struct{}
}

// NewOutput makes an empty stream that has not ended.
func NewOutput() *Output { return &Output{} }

// Append adds raw bytes, which need not be whole characters.
func (o *Output) Append(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		panic("registrytest: output grew after its end")
	}
	o.kept = append(o.kept, text...)
	o.releaseLocked()
}

// Drop gives the first n kept bytes back, as a bounded store does.
func (o *Output) Drop(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = o.kept[n:]
	o.dropped += int64(n)
}

// End says that nothing more will come. It is idempotent.
func (o *Output) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.releaseLocked()
}

// Lose makes every further page and log fail, as a store does that was discarded.
func (o *Output) Lose(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = err
}

// OnPage is called at the begin of each Page, when no lock is held; nil ends that.
func (o *Output) OnPage(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.onPage = f
}

// WidestPage is the largest limit that a page was ever asked with.
func (o *Output) WidestPage() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.widest
}

// OpenLogs counts raw logs that were opened and not closed.
func (o *Output) OpenLogs() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open
}

func (o *Output) writtenLocked() int64 { return o.dropped + int64(len(o.kept)) }

func (o *Output) releaseLocked() {
	still := o.waiting[:0]
	for _, g := range o.waiting {
		if o.ended || o.writtenLocked() > g.offset {
			close(g.closed)
		} else {
			still = append(still, g)
		}
	}
	o.waiting = still
}

// Page is part of [registry.Stream].
func (o *Output) Page(offset, limit int64) (registry.Page, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.onPage; f != nil {
		o.mu.Unlock()
		f()
		o.mu.Lock()
	}
	o.widest = max(o.widest, limit)
	if o.lost != nil {
		return registry.Page{}, o.lost
	}
	if offset < 0 || offset > o.writtenLocked() {
		return registry.Page{}, registry.Errorf(registry.CodeInvalid,
			"offset %d is beyond the output's %d bytes", offset, o.writtenLocked())
	}
	begin := characterStart(o.kept, max(offset-o.dropped, 0))
	text, end := cutText(o.kept, begin, limit, o.ended)
	return registry.Page{
		Text:       text,
		Offset:     o.dropped + begin,
		NextOffset: o.dropped + end,
		Dropped:    o.dropped,
		End:        o.ended && end == int64(len(o.kept)),
	}, nil
}

// Size is part of [registry.Stream].
func (o *Output) Size() (written, dropped int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writtenLocked(), o.dropped
}

// Grown is part of [registry.Stream].
func (o *Output) Grown(offset int64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, growth{offset, make(chan struct{})})
	grown := o.waiting[len(o.waiting)-1].closed
	o.releaseLocked()
	return grown
}

// Open is part of [registry.Stream].
func (o *Output) Open() (registry.RawLog, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost != nil {
		return nil, o.lost
	}
	o.open++
	return &rawLog{output: o}, nil
}

// rawLog is a view of an Output until it is closed.
type rawLog struct {
	output *Output
	closed bool
}

func (l *rawLog) ReadAt(p []byte, offset int64) (int, error) {
	l.output.mu.Lock()
	defer l.output.mu.Unlock()
	switch {
	case offset < l.output.dropped:
		return 0, errors.New("registrytest: offset was dropped")
	case offset >= l.output.writtenLocked():
		return 0, io.EOF
	}
	n := copy(p, l.output.kept[offset-l.output.dropped:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (l *rawLog) Bounds() (first, next int64, ended bool) {
	l.output.mu.Lock()
	defer l.output.mu.Unlock()
	return l.output.dropped, l.output.writtenLocked(), l.output.ended
}

func (l *rawLog) Grown(offset int64) <-chan struct{} { return l.output.Grown(offset) }

func (l *rawLog) Close() error {
	l.output.mu.Lock()
	defer l.output.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.output.open--
	}
	return nil
}
