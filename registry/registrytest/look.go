package registrytest

import (
	"context"
	"strings"
	"time"

	"afoot/registry"
)

// lookCases: rules 7 and 17, reads from an explicit offset.
func lookCases() []testCase {
	return []testCase{
		{name: "a look moves no cursor and marks nothing", run: lookMovesNothing},
		{name: "offset and next offset count raw bytes", run: lookOffsets},
		{name: "an offset beyond the output is invalid", run: lookBeyond},
		{name: "an offset inside a character moves back to its start", run: lookInside},
		{name: "an offset below the kept bytes moves up to them", run: lookDropped},
		{name: "a page below one character still makes progress", run: lookTinyPages},
		{name: "a page holds at most the limit", run: lookLimit},
		{name: "eof comes only at the end of a settled task", run: lookEOF},
		{name: "a waiting look returns with the first byte beyond its offset", run: lookWaitGrows},
		{name: "a waiting look returns at once when bytes are there", run: lookWaitThere},
		{name: "a waiting look returns with the end", run: lookWaitEnds},
		{name: "a waiting look outlasts output that ended before its task", run: lookWaitOutlasts},
		{name: "a waiting look times out alive", run: lookWaitTimesOut},
		{name: "leaving a look ends that look alone", run: lookLeaves},
		{name: "a look takes no turn", run: lookTakesNoTurn},
		{name: "a look that saw the end holds no notice", run: lookHoldsNoNotice},
		{name: "a look at the cursor shows what a read would give, and changes nothing", run: lookAtCursor},
	}
}

func (w *world) look(work *Work, offset int64, o registry.LookOptions) registry.Read {
	w.t.Helper()
	r, err := w.Look(w.ctx, work.caller(), work.ID, offset, o)
	w.is.NoError(err)
	return r
}

func (w *world) looking(work *Work, offset int64, wait time.Duration) *call[registry.Read] {
	c := begin(w.ctx, func(ctx context.Context) (registry.Read, error) {
		return w.Look(ctx, work.caller(), work.ID, offset, registry.LookOptions{Wait: wait})
	})
	w.settled()
	return c
}

func lookMovesNothing(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("one two")
	w.look(work, 0, registry.LookOptions{})
	w.is.Equal("one two", w.take(work).Text)
	work.Output.Append(" three")
	w.look(work, 0, registry.LookOptions{})
	work.Complete("")
	w.settled()
	r := w.look(work, 0, registry.LookOptions{Wait: time.Second})
	w.is.Equal("one two three", r.Text)
	w.is.True(r.EOF)
	w.is.False(r.Snapshot.Reported)
	w.is.False(w.get(work).Reported)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.Equal(" three", w.take(work).Text)
}

func lookOffsets(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("aé界🙂z")
	r := w.look(work, 0, registry.LookOptions{})
	w.is.Equal("aé界🙂z", r.Text)
	w.is.EqualValues(0, r.Offset)
	w.is.EqualValues(11, r.NextOffset)
	w.is.Zero(r.Dropped)
	w.is.Zero(r.Skipped)
	w.is.EqualValues(11, r.Snapshot.OutputBytes)
	r = w.look(work, 3, registry.LookOptions{})
	w.is.Equal("界🙂z", r.Text)
	w.is.EqualValues(3, r.Offset)
	r = w.look(work, 11, registry.LookOptions{})
	w.is.Empty(r.Text)
	w.is.EqualValues(11, r.Offset)
	w.is.EqualValues(11, r.NextOffset)
}

func lookBeyond(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	for _, offset := range []int64{4, 1 << 40, -1} {
		for _, wait := range []time.Duration{0, time.Second} {
			_, err := w.Look(w.ctx, alice(), work.ID, offset, registry.LookOptions{Wait: wait})
			w.is.Equal(registry.CodeInvalid, registry.CodeOf(err), "offset %d, wait %v", offset, wait)
		}
	}
}

func lookInside(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("a🙂b")
	for offset := int64(1); offset <= 4; offset++ {
		r := w.look(work, offset, registry.LookOptions{})
		w.is.Equal("🙂b", r.Text, "offset %d", offset)
		w.is.EqualValues(1, r.Offset)
		w.is.EqualValues(6, r.NextOffset)
	}
}

func lookDropped(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	work.Output.Drop(6)
	for offset := range int64(7) {
		r := w.look(work, offset, registry.LookOptions{})
		w.is.Equal("6789", r.Text)
		w.is.EqualValues(6, r.Offset)
		w.is.EqualValues(10, r.NextOffset)
		w.is.EqualValues(6, r.Dropped)
		w.is.EqualValues(6, r.Snapshot.DroppedBytes)
	}
}

func lookTinyPages(w *world) {
	work := w.start(alice(), Script{})
	const text = "€x€€"
	work.Output.Append(text)
	work.Complete("")
	for limit := int64(1); limit <= 4; limit++ {
		var joined strings.Builder
		for offset := int64(0); ; {
			r := w.look(work, offset, registry.LookOptions{LimitBytes: limit})
			joined.WriteString(r.Text)
			w.is.Equal(offset, r.Offset)
			if r.EOF {
				break
			}
			w.is.Greater(r.NextOffset, offset, "no progress at %d", offset)
			offset = r.NextOffset
		}
		w.is.Equal(text, joined.String(), "limit %d", limit)
	}
}

func lookLimit(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	for limit, want := range []string{"0123456789", "0", "01", "012"} {
		w.is.Equal(want, w.look(work, 0, registry.LookOptions{LimitBytes: int64(limit)}).Text)
	}
	for _, limit := range []int64{0, registry.MaxPageBytes, registry.MaxPageBytes + 1, 1 << 60} {
		w.look(work, 0, registry.LookOptions{LimitBytes: limit})
	}
	w.is.EqualValues(registry.MaxPageBytes, work.Output.WidestPage(), "larger limits are clamped")
}

func lookEOF(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.is.False(w.look(work, 0, registry.LookOptions{}).EOF)
	work.Output.End()
	r := w.look(work, 0, registry.LookOptions{})
	w.is.False(r.EOF, "the output has ended, but not the task")
	w.is.Equal(registry.StatusRunning, r.Snapshot.Status)
	work.Complete("")
	r = w.look(work, 0, registry.LookOptions{LimitBytes: 2})
	w.is.False(r.EOF, "there is more")
	w.is.Equal(registry.StatusCompleted, r.Snapshot.Status)
	w.is.True(w.look(work, 0, registry.LookOptions{}).EOF)
	w.is.True(w.look(work, 3, registry.LookOptions{}).EOF)
}

func lookWaitGrows(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	c := w.looking(work, 3, time.Minute)
	w.pass(time.Second)
	w.is.False(c.returned())
	work.Output.Append("d")
	w.settled()
	w.is.True(c.returned())
	r, err := c.result()
	w.is.NoError(err)
	w.is.Equal("d", r.Text)
	w.is.Equal(registry.StatusRunning, r.Snapshot.Status)
	w.is.Zero(w.waiters(work))
}

func lookWaitThere(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	before := time.Now()
	w.is.Equal("c", w.look(work, 2, registry.LookOptions{Wait: time.Minute}).Text)
	w.is.Zero(time.Since(before))
}

func lookWaitEnds(w *world) {
	work := w.start(alice(), Script{})
	c := w.looking(work, 0, time.Minute)
	work.Complete("")
	w.settled()
	w.is.True(c.returned())
	r, err := c.result()
	w.is.NoError(err)
	w.is.True(r.EOF)
	w.is.Equal(registry.StatusCompleted, r.Snapshot.Status)
	before := time.Now()
	w.is.True(w.look(work, 0, registry.LookOptions{Wait: time.Minute}).EOF)
	w.is.Zero(time.Since(before))
}

// lookWaitOutlasts: a follower that waits from the last byte on must neither spin
// nor see an eof while work that has closed its output still lives.
func lookWaitOutlasts(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Output.End()
	c := w.looking(work, 3, time.Minute)
	w.pass(time.Second)
	w.is.False(c.returned(), "there was neither a byte nor the end")
	work.Complete("")
	w.settled()
	w.is.True(c.returned())
	r, err := c.result()
	w.is.NoError(err)
	w.is.True(r.EOF)
}

func lookWaitTimesOut(w *world) {
	work := w.start(alice(), Script{})
	before := time.Now()
	r := w.look(work, 0, registry.LookOptions{Wait: 1500 * time.Millisecond})
	w.is.Equal(1500*time.Millisecond, time.Since(before))
	w.is.Empty(r.Text)
	w.is.Equal(registry.StatusRunning, r.Snapshot.Status)
	w.is.False(r.EOF)
	w.is.Empty(work.Cancels())
	w.is.Zero(w.waiters(work))
}

func lookLeaves(w *world) {
	work := w.start(alice(), Script{})
	leaver, stayer := w.looking(work, 0, time.Minute), w.looking(work, 0, time.Minute)
	leaver.leave()
	w.settled()
	w.is.True(leaver.returned())
	_, err := leaver.result()
	w.is.ErrorIs(err, context.Canceled)
	w.is.False(stayer.returned())
	work.Output.Append("x")
	r, err := stayer.result()
	w.is.NoError(err)
	w.is.Equal("x", r.Text)
	w.is.Zero(w.waiters(work))
}

func lookTakesNoTurn(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	held := w.hold(work)
	w.is.Equal("abc", w.look(work, 0, registry.LookOptions{}).Text)
	w.is.NoError(held.Confirm())
}

func lookHoldsNoNotice(w *world) {
	work := w.start(alice(), Script{})
	c := w.looking(work, 0, time.Minute)
	work.Complete("")
	w.notices(work, 1)
	_, err := c.result()
	w.is.NoError(err)
	w.is.False(w.get(work).Reported)
}

func lookAtCursor(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("one")
	w.is.Equal("one", w.take(work).Text)
	work.Output.Append("two")
	work.Complete("")
	w.settled()
	events := w.log.all()
	for range 2 {
		r := w.look(work, registry.AtCursor, registry.LookOptions{})
		w.is.Equal("two", r.Text)
		w.is.Equal(int64(3), r.Offset)
		w.is.True(r.EOF)
		w.is.False(r.Snapshot.Reported)
	}
	w.settled()
	w.is.Equal(events, w.log.all())
	w.is.Equal("two", w.take(work).Text)
}
