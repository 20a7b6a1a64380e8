package registrytest

import (
	"math"
	"strings"
	"time"

	"afoot/registry"
)

// tailCases: a consuming read that skips all but the end of what is unread.
func tailCases() []testCase {
	return []testCase{
		{name: "it shows the last bytes and counts what it skipped", run: tailSkips},
		{name: "a confirm moves the cursor behind all of it", run: tailConfirmed},
		{name: "an abandon leaves all of it unread", run: tailAbandoned},
		{name: "it skips nothing of what fits, nor without a tail", run: tailFits},
		{name: "it begins at a character", run: tailCharacter},
		{name: "a character that has not all arrived waits", run: tailIncomplete},
		{name: "what was dropped counts with what was skipped", run: tailDropped},
		{name: "what comes meanwhile is left for the next read", run: tailGrows},
		{name: "a lower limit bounds the page", run: tailLimit},
		{name: "both streams of a split task have their own", run: tailSplit},
		{name: "one stream alone", run: tailOne},
		{name: "a final output, the same each time", run: tailFinal},
		{name: "an ack commits all that an explicit read skipped", run: tailExplicit},
		{name: "with the end it reaches the end of the file", run: tailEnd},
		{name: "together with a promotion", run: tailPromotes},
	}
}

func (w *world) holdTail(work *Work, tail int64) *registry.Delivery {
	w.t.Helper()
	return w.holdWith(work, registry.ReadOptions{Tail: tail})
}

// shows asserts what a read shows, where it begins and what it skipped.
func (w *world) shows(r registry.Read, text string, offset, skipped int64) {
	w.t.Helper()
	w.is.Equal(text, r.Text)
	w.is.Equal(offset, r.Offset)
	w.is.Equal(skipped, r.Skipped)
}

func tailSkips(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	d := w.holdTail(work, 3)
	w.shows(d.Read, "789", 7, 7)
	w.is.EqualValues(10, d.NextOffset)
	w.is.Zero(d.Dropped)
	w.is.EqualValues(10, d.Snapshot.OutputBytes)
}

func tailConfirmed(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	w.is.NoError(w.holdTail(work, 3).Confirm())
	w.shows(w.take(work), "", 10, 0)
	work.Output.Append("abcdef")
	d := w.holdTail(work, 2)
	w.shows(d.Read, "ef", 14, 4)
	w.is.NoError(d.Confirm())
	w.shows(w.look(work, 0, registry.LookOptions{}), "0123456789abcdef", 0, 0)
}

func tailAbandoned(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	w.holdTail(work, 3).Abandon()
	w.shows(w.look(work, registry.AtCursor, registry.LookOptions{}), "0123456789", 0, 0)
	w.shows(w.take(work), "0123456789", 0, 0)
}

func tailFits(w *world) {
	work := w.start(alice(), Script{})
	for _, tail := range []int64{10, 11, math.MaxInt64, 0, -1, math.MinInt64} {
		work.Output.Append("0123456789")
		d := w.holdTail(work, tail)
		w.is.Equal("0123456789", d.Text, "tail %d", tail)
		w.is.Zero(d.Skipped)
		w.is.NoError(d.Confirm())
	}
}

func tailCharacter(w *world) {
	for _, c := range []struct {
		output  string
		tail    int64
		text    string
		skipped int64
	}{
		{"界界界", 9, "界界界", 0}, {"界界界", 8, "界界", 3}, {"界界界", 6, "界界", 3}, {"界界界", 5, "界", 6},
		{"界界界", 3, "界", 6}, {"界界界", 2, "", 9}, {"x🦶", 4, "🦶", 1}, {"x🦶", 3, "", 5}, {"x🦶", 1, "", 5},
		{"é\xff\xffé", 3, "\ufffdé", 3}, {"é\xff\xffé", 4, "\ufffd\ufffdé", 2}, {"x\xe7\x95x", 2, "x", 3},
	} {
		work := w.start(alice(), Script{})
		work.Output.Append(c.output)
		d := w.holdTail(work, c.tail)
		w.shows(d.Read, c.text, c.skipped, c.skipped)
		w.is.EqualValues(len(c.output), d.NextOffset)
		w.is.NoError(d.Confirm())
		w.shows(w.take(work), "", int64(len(c.output)), 0)
		work.Complete("")
	}
}

func tailIncomplete(w *world) {
	for tail := int64(1); tail <= 3; tail++ {
		work := w.start(alice(), Script{})
		work.Output.Append("ab\xe7\x95")
		d := w.holdTail(work, tail)
		w.is.Equal(strings.Repeat("b", max(0, int(tail)-2)), d.Text)
		w.is.EqualValues(2, d.NextOffset)
		w.is.NoError(d.Confirm())
		work.Output.Append("\x8c")
		w.shows(w.take(work), "界", 2, 0)
	}
}

func tailDropped(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	w.is.NoError(w.holdWith(work, registry.ReadOptions{LimitBytes: 2}).Confirm())
	work.Output.Drop(5)
	d := w.holdTail(work, 3)
	w.shows(d.Read, "789", 7, 5)
	w.is.EqualValues(5, d.Dropped)
	d.Abandon()
	d = w.holdTail(work, 8)
	w.shows(d.Read, "56789", 5, 3)
	w.is.NoError(d.Confirm())
}

func tailGrows(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	work.Output.OnPage(func() { work.Output.Append("!") })
	d := w.holdTail(work, 3)
	w.shows(d.Read, "789", 7, 7)
	work.Output.OnPage(nil)
	w.is.NoError(d.Confirm())
	w.shows(w.take(work), "!", 10, 0)
}

func tailLimit(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	d := w.holdWith(work, registry.ReadOptions{Tail: 5, LimitBytes: 2})
	w.shows(d.Read, "56", 5, 5)
	w.is.NoError(d.Confirm())
	w.shows(w.take(work), "789", 7, 0)
	work.Output.Append("abcdef")
	d = w.holdWith(work, registry.ReadOptions{Tail: 2, LimitBytes: 4})
	w.shows(d.Read, "ef", 14, 4)
}

func tailSplit(w *world) {
	work := w.split("0123456789", "ab")
	d := w.holdTail(work, 3)
	w.pieces(d.Read, "789", "ab")
	w.is.EqualValues(7, d.Skipped)
	w.is.Zero(d.Stderr.Skipped)
	d.Abandon()
	work.Stderr.Append("界界")
	d = w.holdTail(work, 4)
	w.pieces(d.Read, "6789", "界")
	w.is.EqualValues(6, d.Skipped)
	w.is.EqualValues(5, d.Stderr.Skipped)
	w.is.NoError(d.Confirm())
	r := w.take(work)
	w.pieces(r, "", "")
	w.is.EqualValues(10, r.Offset)
	w.is.EqualValues(8, r.Stderr.Offset)
}

func tailOne(w *world) {
	work := w.split("0123456789", "abcdef")
	d := w.holdWith(work, registry.ReadOptions{Tail: 2, Stream: registry.StreamStderr})
	w.shows(d.Read, "ef", 4, 4)
	w.is.NoError(d.Confirm())
	d = w.holdWith(work, registry.ReadOptions{Tail: 2, Stream: registry.StreamStdout})
	w.shows(d.Read, "89", 8, 8)
	d.Abandon()
	w.pieces(w.take(work), "0123456789", "")
}

func tailFinal(w *world) {
	work := w.start(alice(), Script{Final: true})
	d := w.holdTail(work, 5)
	w.shows(d.Read, "", 0, 0)
	w.is.NoError(d.Confirm())
	work.finish("ab界界")
	for range 2 {
		d := w.holdTail(work, 5)
		w.shows(d.Read, "界", 5, 5)
		w.is.True(d.EOF)
		w.is.EqualValues(8, d.NextOffset)
		w.is.NoError(d.Confirm())
	}
	w.shows(w.take(work), "ab界界", 0, 0)
}

func tailExplicit(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	for range 2 {
		d := w.holdWith(work, registry.ReadOptions{Tail: 3, Explicit: true})
		w.shows(d.Read, "789", 7, 7)
		w.is.NoError(d.Confirm())
	}
	w.ack(work, 10)
	w.shows(w.take(work), "", 10, 0)
}

func tailEnd(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	d := w.promised(work, registry.ReadOptions{Tail: 3})
	w.shows(d.Read, "789", 7, 7)
	w.is.True(d.EOF)
	w.is.NoError(d.Confirm())
	w.pass(time.Hour)
	w.notices(work, 0)
	work = w.start(alice(), Script{})
	work.Output.Append("ab\xe7\x95")
	work.Complete("")
	d = w.holdTail(work, 3)
	w.shows(d.Read, "b\ufffd", 1, 1)
	w.is.True(d.EOF)
	w.is.EqualValues(4, d.NextOffset)
}

func tailPromotes(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("0123456789")
	d := w.holdWith(work, registry.ReadOptions{Tail: 3, Promote: true})
	w.shows(d.Read, "789", 7, 7)
	w.background(work)
	w.is.NoError(d.Confirm())
	w.shows(w.take(work), "", 10, 0)

	work = w.foreground(alice(), Script{})
	work.Output.Append("0123456789")
	work.Output.OnPage(func() {
		work.Output.OnPage(nil)
		work.Output.Append("abc")
		work.Complete("")
	})
	d = w.holdWith(work, registry.ReadOptions{Tail: 4, Promote: true})
	w.shows(d.Read, "9abc", 9, 9)
	w.is.True(d.EOF)
}
