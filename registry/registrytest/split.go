package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// splitCases: a task with two streams. A whole read carries both and commits both;
// a read of one leaves the other alone.
func splitCases() []testCase {
	return []testCase{
		{name: "a whole read carries both streams and commits both cursors", run: splitBoth},
		{name: "an abandoned read moves neither cursor", run: splitAbandoned},
		{name: "a task with one stream has no second piece", run: splitNone},
		{name: "a read of one stream moves that cursor alone", run: splitOne},
		{name: "the limit bounds each piece", run: splitLimit},
		{name: "each piece has its own eof", run: splitEOF},
		{name: "each piece counts what it dropped and skipped", run: splitDropped},
		{name: "sizes count both streams", run: splitSizes},
		{name: "a read with the end reports, also one of a single stream or with a rest", run: splitReports},
		{name: "a wait carries both pieces", run: splitWait},
		{name: "a wait whose bound comes out of turn shows where both cursors are", run: splitOutOfTurn},
		{name: "a look shows one stream by offset", run: splitLook},
		{name: "a look at the cursor shows both and changes nothing", run: splitLookAtCursor},
		{name: "a waiting look wakes for its stream alone", run: splitLookWaits},
		{name: "a waiting look at the cursor wakes for either stream", run: splitLookEither},
		{name: "each stream has a log", run: splitLog},
		{name: "stderr of a task that is not split is invalid, and so is any other name", run: splitInvalid},
	}
}

func (w *world) split(out, errs string) *Work {
	work := w.start(alice(), Script{Split: true})
	work.Output.Append(out)
	work.Stderr.Append(errs)
	return work
}

// pieces asserts what a read shows of both streams.
func (w *world) pieces(r registry.Read, out, errs string) {
	w.t.Helper()
	w.is.Equal(out, r.Text)
	w.is.NotNil(r.Stderr)
	w.is.Equal(errs, r.Stderr.Text)
}

func (w *world) takeOf(work *Work, stream string) registry.Read {
	w.t.Helper()
	d := w.holdWith(work, registry.ReadOptions{Stream: stream})
	w.is.NoError(d.Confirm())
	return d.Read
}

func splitBoth(w *world) {
	work := w.split("out", "error")
	r := w.take(work)
	w.pieces(r, "out", "error")
	w.is.EqualValues(3, r.NextOffset)
	w.is.EqualValues(5, r.Stderr.NextOffset)
	w.pieces(w.take(work), "", "")
	work.Stderr.Append("more")
	r = w.take(work)
	w.pieces(r, "", "more")
	w.is.EqualValues(5, r.Stderr.Offset)
	w.is.EqualValues(9, r.Stderr.NextOffset)
	work.Output.Append("put")
	w.pieces(w.take(work), "put", "")
}

func splitAbandoned(w *world) {
	work := w.split("out", "error")
	w.hold(work).Abandon()
	w.pieces(w.take(work), "out", "error")
}

func splitNone(w *world) {
	for _, script := range []Script{{}, {Final: true}} {
		work := w.start(alice(), script)
		w.is.Nil(w.take(work).Stderr)
		w.is.Nil(w.takeOf(work, registry.StreamStdout).Stderr)
		w.is.Nil(w.look(work, registry.AtCursor, registry.LookOptions{}).Stderr)
	}
}

func splitOne(w *world) {
	work := w.split("out", "error")
	r := w.takeOf(work, registry.StreamStderr)
	w.is.Equal("error", r.Text)
	w.is.EqualValues(5, r.NextOffset)
	w.is.Nil(r.Stderr)
	w.pieces(w.take(work), "out", "")
	work.Output.Append("put")
	work.Stderr.Append("s")
	r = w.takeOf(work, registry.StreamStdout)
	w.is.Equal("put", r.Text)
	w.is.Nil(r.Stderr)
	w.pieces(w.take(work), "", "s")
}

func splitLimit(w *world) {
	work := w.split("abcdef", "ghi")
	d := w.holdWith(work, registry.ReadOptions{LimitBytes: 4})
	w.pieces(d.Read, "abcd", "ghi")
	w.is.NoError(d.Confirm())
	work.Stderr.Append("jklmno")
	d = w.holdWith(work, registry.ReadOptions{LimitBytes: 4})
	w.pieces(d.Read, "ef", "jklm")
	w.is.NoError(d.Confirm())
	w.pieces(w.take(work), "", "no")
}

func splitEOF(w *world) {
	work := w.split("abcdef", "ghi")
	work.Complete("")
	d := w.holdWith(work, registry.ReadOptions{LimitBytes: 4})
	w.is.False(d.EOF)
	w.is.True(d.Stderr.EOF)
	w.is.NoError(d.Confirm())
	r := w.take(work)
	w.is.True(r.EOF)
	w.is.True(r.Stderr.EOF)
	work = w.split("abc", "defghi")
	w.is.False(w.look(work, registry.AtCursor, registry.LookOptions{}).Stderr.EOF)
	work.Complete("")
	d = w.holdWith(work, registry.ReadOptions{LimitBytes: 4})
	w.is.True(d.EOF, "the main stream's")
	w.is.False(d.Stderr.EOF)
	w.is.NoError(d.Confirm())
	r = w.takeOf(work, registry.StreamStderr)
	w.is.Equal("hi", r.Text)
	w.is.True(r.EOF)
}

func splitDropped(w *world) {
	work := w.split("abcdef", "ghijkl")
	w.take(work)
	work.Stderr.Append("mnopqr")
	work.Stderr.Drop(8)
	r := w.take(work)
	w.pieces(r, "", "opqr")
	w.is.Zero(r.Dropped)
	w.is.Zero(r.Skipped)
	w.is.EqualValues(8, r.Stderr.Dropped)
	w.is.EqualValues(2, r.Stderr.Skipped)
	w.is.EqualValues(8, r.Stderr.Offset)
	w.is.EqualValues(8, r.Snapshot.DroppedBytes)
}

func splitSizes(w *world) {
	work := w.split("abc", "defg")
	w.is.EqualValues(7, w.get(work).OutputBytes)
	work.Output.Drop(1)
	work.Stderr.Drop(2)
	s := w.get(work)
	w.is.EqualValues(7, s.OutputBytes)
	w.is.EqualValues(3, s.DroppedBytes)
	w.is.EqualValues(7, w.take(work).Snapshot.OutputBytes)
	w.is.EqualValues(7, w.takeOf(work, registry.StreamStderr).Snapshot.OutputBytes)
}

func splitReports(w *world) {
	for _, o := range []registry.ReadOptions{
		{}, {LimitBytes: 1}, {Stream: registry.StreamStdout}, {Stream: registry.StreamStderr}, {Stream: registry.StreamStderr, LimitBytes: 1},
	} {
		work := w.split("abc", "defg")
		d := w.promised(work, o)
		w.is.True(d.Snapshot.Reported)
		w.is.NoError(d.Confirm())
		w.is.True(w.get(work).Reported)
		w.pass(time.Hour)
		w.notices(work, 0)
	}
}

func splitWait(w *world) {
	work := w.split("abc", "defg")
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	work.Stderr.Append("hi")
	work.Complete("")
	d := w.delivered(c)
	w.pieces(d.Read, "abc", "defghi")
	d.Abandon()
	w.pieces(w.take(work), "abc", "defghi")
}

func splitOutOfTurn(w *world) {
	work := w.split("abc", "defg")
	w.take(work)
	work.Stderr.Append("hi")
	first := w.hold(work)
	d := w.holdWith(work, registry.ReadOptions{Wait: time.Second})
	w.pieces(d.Read, "", "")
	w.is.EqualValues(3, d.NextOffset)
	w.is.EqualValues(4, d.Stderr.NextOffset)
	d = w.holdWith(work, registry.ReadOptions{Wait: time.Second, Stream: registry.StreamStderr})
	w.is.Empty(d.Text)
	w.is.EqualValues(4, d.NextOffset)
	w.is.NoError(first.Confirm())
}

func splitLook(w *world) {
	work := w.split("abc", "defg")
	for _, stream := range []string{"", registry.StreamStdout} {
		r := w.look(work, 1, registry.LookOptions{Stream: stream})
		w.is.Equal("bc", r.Text)
		w.is.Nil(r.Stderr)
	}
	r := w.look(work, 1, registry.LookOptions{Stream: registry.StreamStderr})
	w.is.Equal("efg", r.Text)
	w.is.EqualValues(4, r.NextOffset)
	w.is.Nil(r.Stderr)
	_, err := w.Look(w.ctx, alice(), work.ID, 4, registry.LookOptions{})
	w.refused(err, registry.CodeInvalid)
}

func splitLookAtCursor(w *world) {
	work := w.split("abc", "defg")
	w.pieces(w.look(work, registry.AtCursor, registry.LookOptions{}), "abc", "defg")
	w.takeOf(work, registry.StreamStderr)
	work.Stderr.Append("hi")
	w.pieces(w.look(work, registry.AtCursor, registry.LookOptions{}), "abc", "hi")
	w.is.Equal("hi", w.look(work, registry.AtCursor, registry.LookOptions{Stream: registry.StreamStderr}).Text)
	r := w.look(work, registry.AtCursor, registry.LookOptions{Stream: registry.StreamStdout})
	w.is.Equal("abc", r.Text)
	w.is.Nil(r.Stderr)
	w.pieces(w.take(work), "abc", "hi")
}

func (w *world) lookingAt(work *Work, offset int64, stream string) *call[registry.Read] {
	c := begin(w.ctx, func(ctx context.Context) (registry.Read, error) {
		return w.Look(ctx, work.caller(), work.ID, offset, registry.LookOptions{Wait: time.Minute, Stream: stream})
	})
	w.settled()
	return c
}

func splitLookWaits(w *world) {
	work := w.split("abc", "defg")
	out, errs := w.lookingAt(work, 3, registry.StreamStdout), w.lookingAt(work, 4, registry.StreamStderr)
	work.Output.Append("x")
	w.settled()
	w.is.True(out.returned())
	w.is.False(errs.returned())
	work.Stderr.Append("y")
	r, err := errs.result()
	w.is.NoError(err)
	w.is.Equal("y", r.Text)
	r, err = out.result()
	w.is.NoError(err)
	w.is.Equal("x", r.Text)
}

func splitLookEither(w *world) {
	work := w.split("abc", "defg")
	w.take(work)
	for _, stream := range []*Output{work.Stderr, work.Output} {
		c := w.lookingAt(work, registry.AtCursor, "")
		w.is.False(c.returned())
		stream.Append("x")
		r, err := c.result()
		w.is.NoError(err)
		w.is.Equal("x", r.Text+r.Stderr.Text)
		w.take(work)
	}
	c := w.lookingAt(work, registry.AtCursor, "")
	work.Output.End()
	w.settled()
	w.is.False(c.returned(), "the other stream goes on")
	work.Stderr.Append("z")
	r, err := c.result()
	w.is.NoError(err)
	w.pieces(r, "", "z")
}

func splitLog(w *world) {
	work := w.split("abc", "defg")
	for stream, size := range map[string]int64{"": 3, registry.StreamStdout: 3, registry.StreamStderr: 4} {
		log, err := w.OpenLog(w.ctx, alice(), work.ID, stream)
		w.is.NoError(err)
		_, next, _ := log.Bounds()
		w.is.Equal(size, next)
		w.is.NoError(log.Close())
	}
}

func splitInvalid(w *world) {
	for _, c := range []struct {
		script Script
		stream string
	}{
		{Script{}, registry.StreamStderr}, {Script{Final: true}, registry.StreamStderr},
		{Script{}, "both"}, {Script{Split: true}, "both"}, {Script{Split: true}, "STDERR"},
	} {
		work := w.start(alice(), c.script)
		_, err := w.Read(w.ctx, alice(), work.ID, registry.ReadOptions{Stream: c.stream, Wait: time.Hour})
		w.refused(err, registry.CodeInvalid)
		_, err = w.Look(w.ctx, alice(), work.ID, 0, registry.LookOptions{Stream: c.stream, Wait: time.Hour})
		w.refused(err, registry.CodeInvalid)
		if !c.script.Final {
			_, err = w.OpenLog(w.ctx, alice(), work.ID, c.stream)
			w.refused(err, registry.CodeInvalid)
		}
	}
}
