package inmem

import "afoot/registry"

// The streams of a task by index. The first is the main one: its fields stand for
// the task.
const (
	stdout = iota
	stderr
)

// source is what a record shows: streams, which are read by offset, or without the first
// of them a final output alone.
type source struct {
	streams [2]registry.Stream // never change
	final   string             // guarded by Service.mu
}

// streams needs no lock. The second one is nil of a task with one stream.
func (r *record) streams() [2]registry.Stream {
	if r.source != nil {
		return r.source.streams
	}
	out, _ := r.run.(registry.Stream)
	return [2]registry.Stream{stdout: out}
}

// outputLocked is the final output.
func (r *record) outputLocked() string {
	if r.source == nil {
		return ""
	}
	return r.source.final
}

// cursors are offsets in raw bytes, one per stream.
type cursors [2]int64

// reach reports whether nothing of other lies ahead.
func (c cursors) reach(other cursors) bool {
	return c[stdout] >= other[stdout] && c[stderr] >= other[stderr]
}

// further gives the farther offset of each stream.
func (c cursors) further(other cursors) cursors {
	return cursors{max(c[stdout], other[stdout]), max(c[stderr], other[stderr])}
}

// portion is what a read asks for: one stream, or both.
type portion struct {
	at cursors
	// which stream has the main place; both gives the second as a piece beside it.
	which int
	both  bool
	limit int64
	// tail, when positive, is how much of the end of what is unread is asked for.
	tail int64
}

// last asks for the end of what is unread alone, if tail is positive.
func (p portion) last(tail int64) portion {
	if tail > 0 {
		p.tail, p.limit = tail, min(p.limit, tail)
	}
	return p
}

// next gives the offsets behind what was read.
func (p portion) next(read registry.Read) cursors {
	n := p.at
	n[p.which] = read.NextOffset
	if p.both {
		n[stderr] = read.Stderr.NextOffset
	}
	return n
}

// nothing reports whether a read shows no byte.
func nothing(read registry.Read) bool {
	return read.NextOffset == read.Offset && (read.Stderr == nil || read.Stderr.NextOffset == read.Stderr.Offset)
}

// chosen gives the stream of that name. It needs no lock.
func (r *record) chosen(name string) (int, error) {
	switch name {
	case "", registry.StreamStdout:
		return stdout, nil
	case registry.StreamStderr:
		if r.streams()[stderr] != nil {
			return stderr, nil
		}
		return 0, registry.Errorf(registry.CodeInvalid, "the task has one stream, and no stderr of its own")
	}
	return 0, registry.Errorf(registry.CodeInvalid, "stream must be stdout or stderr")
}

// portion is what a read with that stream's name asks for.
func (r *record) portion(name string, limit int64) (portion, error) {
	which, err := r.chosen(name)
	if limit <= 0 || limit > registry.MaxPageBytes {
		limit = registry.MaxPageBytes
	}
	return portion{which: which, both: name == "" && r.streams()[stderr] != nil, limit: limit}, err
}

// view is a snapshot whose output sizes are asked of the producer, without the
// lock.
type view struct {
	snap    registry.Snapshot
	streams [2]registry.Stream
	output  string
	// mark is what has to be written before the view is shown.
	mark registry.Mark
}

func (r *record) viewLocked() view {
	return view{snap: r.snapshotLocked(), streams: r.streams(), output: r.outputLocked(), mark: r.mark}
}

// sizes counts what was written to each stream, and what of it was dropped.
type sizes struct{ written, dropped cursors }

func (v view) sizes() (z sizes) {
	if v.streams[stdout] == nil {
		z.written[stdout] = int64(len(v.output))
		return z
	}
	for i, stream := range v.streams {
		if stream != nil {
			z.written[i], z.dropped[i] = stream.Size()
		}
	}
	return z
}

func (v view) sized(z sizes) registry.Snapshot {
	v.snap.OutputBytes = z.written[stdout] + z.written[stderr]
	v.snap.DroppedBytes = z.dropped[stdout] + z.dropped[stderr]
	return v.snap
}

func (v view) fill() registry.Snapshot { return v.sized(v.sizes()) }

// read gives a portion of output with the facts of the view, and how much had been
// written to each stream. A view that is not terminal never gives the end of file.
func (v view) read(p portion) (registry.Read, cursors, error) {
	// Sizes first: whoever waits for more than was seen must not miss bytes that came
	// after the page was cut.
	z := v.sizes()
	piece, err := v.piece(&z, p.which, p)
	if err != nil {
		return registry.Read{}, cursors{}, err
	}
	read := registry.Read{
		Text: piece.Text, Offset: piece.Offset, NextOffset: piece.NextOffset,
		Dropped: piece.Dropped, EOF: piece.EOF, Skipped: piece.Skipped,
	}
	if p.both {
		second, err := v.piece(&z, stderr, p)
		if err != nil {
			return registry.Read{}, cursors{}, err
		}
		read.Stderr = &second
	}
	read.Snapshot = v.sized(z)
	return read, z.written, nil
}

// bare is a read that shows nothing of the output.
func (v view) bare(p portion) registry.Read {
	z := v.sizes()
	read := registry.Read{
		Snapshot: v.sized(z), Offset: p.at[p.which], NextOffset: p.at[p.which], Dropped: z.dropped[p.which],
	}
	if p.both {
		read.Stderr = &registry.Piece{Offset: p.at[stderr], NextOffset: p.at[stderr], Dropped: z.dropped[stderr]}
	}
	return read
}

func (v view) piece(z *sizes, which int, p portion) (registry.Piece, error) {
	from := p.at[which]
	at := from
	if p.tail > 0 {
		at = max(from, z.written[which]-p.tail)
	}
	page, err := v.page(which, at, p.limit)
	// A character that begins before the tail is skipped, unless it is still arriving.
	for ; err == nil && at > from && page.Offset < at && page.Text != ""; at++ {
		page, err = v.page(which, at+1, p.limit)
	}
	if err != nil {
		return registry.Piece{}, err
	}
	z.written[which] = max(z.written[which], page.NextOffset)
	z.dropped[which] = max(z.dropped[which], page.Dropped)
	return registry.Piece{
		Text: page.Text, Offset: page.Offset, NextOffset: page.NextOffset, Dropped: page.Dropped,
		EOF:     v.snap.Status.Terminal() && page.End,
		Skipped: max(0, page.Offset-from),
	}, nil
}
