package tools

import (
	"context"
	"unicode/utf8"

	"afoot/registry"
)

// longestTail is the most that one page is sure to hold of an output's end, wherever its
// characters begin.
const longestTail = registry.MaxPageBytes - utf8.UTFMax

// printed gives what a task that has ended printed, its tail if that is long: the same
// whoever read some of it, and to nobody's cost.
func (s *Set) printed(ctx context.Context, call Call, ended registry.Snapshot) (registry.Read, error) {
	// A look moves back to the start of a character, and the page has to reach the end.
	begin := max(ended.DroppedBytes, ended.OutputBytes-s.cfg.ResultBytes)
	read, err := s.cfg.Service.Look(ctx, call.Caller, ended.ID, begin, registry.LookOptions{
		LimitBytes: ended.OutputBytes - begin + utf8.UTFMax,
	})
	read.Skipped = read.Offset
	return read, err
}

// complete gives a read of the end what the read lacks: what somebody else read before,
// or all of it if it did not get its turn. What can't be had any more is lacking, which
// the answer says.
func (f *foreground) complete(ctx context.Context, d *registry.Delivery) {
	if d.EOF && d.Offset == d.Skipped {
		return
	}
	if whole, err := f.set.printed(ctx, f.call, d.Snapshot); err == nil {
		whole.Snapshot = d.Snapshot
		d.Read = whole
	}
}

// lacking counts the bytes that an answer should show and does not: those before its
// read, and those behind it unless they are the beginning of a character.
func lacking(r registry.Read) int64 {
	behind := r.Snapshot.OutputBytes - r.NextOffset
	if r.Snapshot.Status.Terminal() || r.Text == "" && behind >= utf8.UTFMax {
		return r.Offset + behind
	}
	return r.Offset
}
