package registrytest

import (
	"time"

	"afoot/registry"
)

// splitAckCases: an ack names an offset of standard output, and what was handed out
// of standard error commits with it.
func splitAckCases() []testCase {
	return []testCase{
		{name: "an ack commits both pieces", run: splitAckBoth},
		{name: "an ack commits a second piece alone", run: splitAckSecond},
		{name: "a part of the main stream leaves the second where it is", run: splitAckPart},
		{name: "of two reads with one offset the lesser piece is committed", run: splitAckLesser},
		{name: "a second piece that was not acked is read again", run: splitAckNone},
		{name: "a plain read commits both and settles the handout", run: splitAckPlain},
		{name: "an ack of the end reports with both pieces", run: splitAckEnd},
		{name: "the promise of the end covers both pieces", run: splitAckPromise},
		{name: "an explicit read can't choose stderr", run: splitAckStderr},
	}
}

func splitAckBoth(w *world) {
	work := w.split("abc", "defg")
	for range 2 {
		w.pieces(w.takeExplicit(work), "abc", "defg")
	}
	w.ack(work, 3)
	w.pieces(w.takeExplicit(work), "", "")
}

func splitAckSecond(w *world) {
	work := w.split("", "defg")
	w.pieces(w.takeExplicit(work), "", "defg")
	w.ack(work, 0)
	work.Stderr.Append("hi")
	w.pieces(w.takeExplicit(work), "", "hi")
	w.ack(work, 0)
	w.pieces(w.take(work), "", "")
}

func splitAckPart(w *world) {
	work := w.split("abc", "defg")
	w.takeExplicit(work)
	w.ack(work, 2)
	w.pieces(w.takeExplicit(work), "c", "defg")
	w.ack(work, 3)
	w.pieces(w.take(work), "", "")
}

func splitAckLesser(w *world) {
	work := w.split("abc", "de")
	w.takeExplicit(work)
	work.Stderr.Append("fg")
	w.pieces(w.takeExplicit(work), "abc", "defg")
	w.ack(work, 3)
	w.pieces(w.take(work), "", "fg")
}

func splitAckNone(w *world) {
	work := w.split("abc", "defg")
	w.takeExplicit(work)
	w.pass(time.Hour)
	w.pieces(w.takeExplicit(work), "abc", "defg")
}

func splitAckPlain(w *world) {
	work := w.split("abc", "defg")
	w.takeExplicit(work)
	w.pieces(w.take(work), "abc", "defg")
	w.refused(w.Ack(w.ctx, alice(), work.ID, 3), registry.CodeConflict)
	// A plain read of one stream does not settle what was handed out of the other.
	work = w.split("abc", "defg")
	w.takeExplicit(work)
	w.is.Equal("abc", w.takeOf(work, registry.StreamStdout).Text)
	w.ack(work, 3)
	w.pieces(w.take(work), "", "")
}

func splitAckEnd(w *world) {
	work := w.split("abc", "defg")
	work.Complete("")
	r := w.takeExplicit(work)
	w.is.True(r.EOF && r.Stderr.EOF)
	w.is.False(w.get(work).Reported)
	w.ack(work, 3)
	w.is.True(w.get(work).Reported)
	w.pieces(w.take(work), "", "")
}

func splitAckPromise(w *world) {
	work := w.split("abc", "defg")
	d := w.promised(work, registry.ReadOptions{Explicit: true, LimitBytes: 3})
	w.pieces(d.Read, "abc", "def")
	w.is.NoError(d.Confirm())
	w.notices(work, 0)
	w.pass(registry.AckHold + tick)
	w.notices(work, 1)
	w.ack(work, 3)
	w.is.True(w.get(work).Reported)
	w.pieces(w.take(work), "", "g")
}

func splitAckStderr(w *world) {
	work := w.split("abc", "defg")
	_, err := w.Read(w.ctx, alice(), work.ID, registry.ReadOptions{Explicit: true, Stream: registry.StreamStderr})
	w.refused(err, registry.CodeInvalid)
	d := w.holdWith(work, registry.ReadOptions{Explicit: true, Stream: registry.StreamStdout})
	w.is.NoError(d.Confirm())
	w.ack(work, 3)
	w.pieces(w.take(work), "", "defg")
}
