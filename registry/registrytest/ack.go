package registrytest

import (
	"context"
	"math"
	"time"

	"afoot/registry"
)

// ackCases: rule 16, what an explicit read and its ack move.
func ackCases() []testCase {
	return []testCase{
		{name: "an explicit read moves nothing until its ack", run: ackMoves},
		{name: "an ack reports the end that was handed out", run: ackReports},
		{name: "an ack reports an end without any text", run: ackReportsEmpty},
		{name: "an ack of a live read reports nothing", run: ackLive},
		{name: "an ack may take a part", run: ackPart},
		{name: "an ack beyond what was handed out is invalid", run: ackBeyond},
		{name: "an ack with nothing outstanding is a conflict", run: ackNothing},
		{name: "an ack below the cursor changes nothing", run: ackBelow},
		{name: "the last ack can be repeated", run: ackRepeated},
		{name: "an abandoned explicit read moves nothing by itself", run: ackAbandoned},
		{name: "a further read gets the same delta and what came since", run: ackGrown},
		{name: "a plain read meanwhile commits as usual", run: ackPlainRead},
		{name: "an ack that overtakes the confirm of its answer counts", run: ackOvertakes},
		{name: "an ack of a final output reports it", run: ackFinal},
		{name: "explicit reads of two callers are one delta", run: ackTwoCallers},
	}
}

func (w *world) ack(work *Work, next int64) {
	w.t.Helper()
	w.is.NoError(w.Ack(w.ctx, work.caller(), work.ID, next))
}

func ackMoves(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	for range 3 {
		r := w.takeExplicit(work)
		w.is.Equal("abc", r.Text)
		w.is.EqualValues(3, r.NextOffset)
	}
	w.ack(work, 3)
	w.is.Empty(w.takeExplicit(work).Text)
	work.Output.Append("def")
	w.is.Equal("def", w.takeExplicit(work).Text)
	w.ack(work, 6)
	w.is.Empty(w.take(work).Text)
}

func ackReports(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.promised(work, registry.ReadOptions{Explicit: true})
	w.is.NoError(d.Confirm())
	w.is.False(w.get(work).Reported)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled)
	w.ack(work, d.NextOffset)
	w.is.True(w.get(work).Reported)
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
}

// ackReportsEmpty: the cursor is at the end already, the ack is for the status.
func ackReportsEmpty(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.take(work)
	d := w.promised(work, registry.ReadOptions{Explicit: true})
	w.is.Empty(d.Text)
	w.is.EqualValues(3, d.NextOffset)
	w.is.NoError(d.Confirm())
	w.ack(work, 3)
	w.is.True(w.get(work).Reported)
	w.pass(time.Hour)
	w.notices(work, 0)
}

func ackLive(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.takeExplicit(work)
	work.Complete("")
	w.notices(work, 1)
	w.ack(work, 3)
	w.is.False(w.get(work).Reported, "the answer told of no end")
	r := w.take(work)
	w.is.Empty(r.Text)
	w.is.True(r.EOF)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
}

func ackPart(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abcdef")
	w.takeExplicit(work)
	w.ack(work, 2)
	r := w.take(work)
	w.is.Equal("cdef", r.Text)
	w.is.EqualValues(2, r.Offset)
}

func ackBeyond(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.takeExplicit(work)
	work.Output.Append("def")
	for _, next := range []int64{4, 6, 7, math.MaxInt64} {
		w.refused(w.Ack(w.ctx, alice(), work.ID, next), registry.CodeInvalid)
	}
	w.is.Equal("abcdef", w.holdWith(work, registry.ReadOptions{Explicit: true}).Text, "nothing moved")
}

func ackNothing(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.refused(w.Ack(w.ctx, alice(), work.ID, 3), registry.CodeConflict)
	w.is.Equal("abc", w.take(work).Text)
	work.Output.Append("def")
	w.refused(w.Ack(w.ctx, alice(), work.ID, 6), registry.CodeConflict)
	w.takeExplicit(work)
	w.ack(work, 6)
	work.Output.Append("ghi")
	w.refused(w.Ack(w.ctx, alice(), work.ID, 9), registry.CodeConflict)
	w.is.Equal("ghi", w.take(work).Text)
}

func ackBelow(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abcdef")
	d := w.holdWith(work, registry.ReadOptions{LimitBytes: 3})
	w.is.NoError(d.Confirm())
	w.takeExplicit(work)
	for _, next := range []int64{0, 1, 2} {
		w.ack(work, next)
	}
	w.is.Equal("def", w.takeExplicit(work).Text)
	w.ack(work, 6)
	w.is.Empty(w.take(work).Text)
}

func ackRepeated(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Complete("")
	w.settled()
	w.takeExplicit(work)
	for range 3 {
		w.ack(work, 3)
	}
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
}

// ackAbandoned: a caller who acknowledges an answer that the server gave up may
// have got it all the same; whether it is believed is left open.
func ackAbandoned(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.holdWith(work, registry.ReadOptions{Explicit: true})
	d.Abandon()
	d = w.hold(work)
	w.is.Equal("abc", d.Text)
	d.Abandon()
	want := ""
	if err := w.Ack(w.ctx, alice(), work.ID, 3); err != nil {
		w.refused(err, registry.CodeConflict)
		want = "abc"
	}
	w.is.Equal(want, w.take(work).Text)
}

func ackGrown(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.takeExplicit(work)
	work.Output.Append("def")
	r := w.takeExplicit(work)
	w.is.Zero(r.Offset)
	w.is.Equal("abcdef", r.Text)
	w.ack(work, 3)
	w.is.Equal("def", w.take(work).Text)
}

func ackPlainRead(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.promised(work, registry.ReadOptions{Explicit: true})
	w.is.NoError(d.Confirm())
	w.is.Equal("abc", w.take(work).Text, "the same delta")
	w.is.True(w.get(work).Reported)
	w.is.Empty(w.take(work).Text)
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
}

// ackOvertakes: a quick client has read the answer and acknowledges it on another
// connection while the server has not yet come back from its own write.
func ackOvertakes(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.promised(work, registry.ReadOptions{Explicit: true})
	c := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Ack(ctx, alice(), work.ID, d.NextOffset)
	})
	w.settled()
	w.is.NoError(d.Confirm())
	w.settled()
	w.is.True(c.returned())
	_, err := c.result()
	w.is.NoError(err)
	w.is.True(w.get(work).Reported)
	w.is.Empty(w.take(work).Text)
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
}

func ackFinal(w *world) {
	work := w.start(alice(), Script{Final: true})
	work.finish("answer")
	w.settled()
	r := w.takeExplicit(work)
	w.is.Equal("answer", r.Text)
	w.is.False(w.get(work).Reported)
	w.ack(work, r.NextOffset)
	w.is.True(w.get(work).Reported)
	w.is.Equal("answer", w.take(work).Text)
}

func ackTwoCallers(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	sibling := w.open(alice(), 0)
	for _, c := range []registry.Caller{alice(), sibling} {
		d, err := w.Read(w.ctx, c, work.ID, registry.ReadOptions{Explicit: true})
		w.is.NoError(err)
		w.is.Equal("abc", d.Text)
		w.is.NoError(d.Confirm())
	}
	w.is.NoError(w.Ack(w.ctx, sibling, work.ID, 3))
	w.is.Empty(w.take(work).Text)
}
