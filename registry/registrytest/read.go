package registrytest

import (
	"time"

	"afoot/registry"
)

// readCases: rules 6, 8, 17 and 18 for consuming reads of a stream.
func readCases() []testCase {
	return []testCase{
		{name: "a read gives the output since the last one", run: readDeltas},
		{name: "all readers share one cursor", run: readOneCursor},
		{name: "offsets of reads join without a gap", run: readOffsets},
		{name: "a settled task without output reads empty", run: readEmptyEnd},
		{name: "a terminal read marks the task reported", run: readReports},
		{name: "a terminal read reports though output remains", run: readReportsEarly},
		{name: "a read of live work marks nothing", run: readLive},
		{name: "output that ended before its task is no eof", run: readEOF},
		{name: "a character waits for its rest", run: readCutCharacter},
		{name: "a read that fell behind the kept bytes says what it skipped", run: readSkips},
		{name: "a read holds at most the limit", run: readLimit},
		{name: "without a positive wait a read does not block", run: readNoWait},
		{name: "output can be read again by offset after it was consumed", run: readAgain},
	}
}

func readDeltas(w *world) {
	work := w.start(alice(), Script{})
	w.is.Empty(w.take(work).Text)
	work.Output.Append("one\n")
	w.is.Equal("one\n", w.take(work).Text)
	w.is.Empty(w.take(work).Text)
	work.Output.Append("two\n")
	work.Output.Append("three")
	w.is.Equal("two\nthree", w.take(work).Text)
	work.Output.Append("!")
	work.Complete("")
	w.is.Equal("!", w.take(work).Text)
	w.is.Empty(w.take(work).Text)
}

func readOneCursor(w *world) {
	work := w.start(nobody(), Script{})
	work.Output.Append("abc")
	for i, c := range []registry.Caller{alice(), bob(), nobody()} {
		d, err := w.Read(w.ctx, c, work.ID, registry.ReadOptions{})
		w.is.NoError(err)
		w.is.NoError(d.Confirm())
		w.is.Equal([]string{"abc", "", ""}[i], d.Text)
	}
}

func readOffsets(w *world) {
	work := w.start(alice(), Script{})
	next := int64(0)
	for _, text := range []string{"é", "", "界x", "🙂"} {
		work.Output.Append(text)
		r := w.take(work)
		w.is.Equal(next, r.Offset)
		next += int64(len(text))
		w.is.Equal(next, r.NextOffset)
		w.is.Equal(next, r.Snapshot.OutputBytes)
		w.is.False(r.EOF)
	}
	work.Complete("")
	r := w.take(work)
	w.is.Equal(next, r.Offset)
	w.is.Equal(next, r.NextOffset)
	w.is.True(r.EOF)
}

func readEmptyEnd(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("exit code: 0")
	for range 2 {
		r := w.take(work)
		w.is.Empty(r.Text)
		w.is.Zero(r.NextOffset)
		w.is.True(r.EOF)
		w.is.Equal("exit code: 0", r.Snapshot.Detail)
	}
}

func readReports(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.settled()
	r := w.take(work)
	w.is.True(r.Snapshot.Reported)
	w.is.True(w.get(work).Reported)
	w.take(work)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
	w.is.True(w.heard(work, registry.ChangeReported).Reported)
}

func readReportsEarly(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abcdef")
	work.Complete("")
	d := w.holdWith(work, registry.ReadOptions{LimitBytes: 2})
	w.is.Equal("ab", d.Text)
	w.is.False(d.EOF)
	w.is.True(d.Snapshot.Reported, "the caller sees that the task has ended")
	w.is.NoError(d.Confirm())
	w.is.True(w.get(work).Reported)
	w.is.Equal("cdef", w.take(work).Text)
}

func readLive(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	r := w.take(work)
	w.is.False(r.Snapshot.Reported)
	w.is.False(w.get(work).Reported)
	w.tale(work, registry.ChangeRegistered)
	work.Complete("")
	w.notices(work, 1)
}

func readEOF(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Output.End()
	r := w.take(work)
	w.is.Equal("abc", r.Text)
	w.is.False(r.EOF)
	w.is.False(r.Snapshot.Reported)
	work.Complete("")
	r = w.take(work)
	w.is.Empty(r.Text)
	w.is.True(r.EOF)
}

func readCutCharacter(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("a\xe2\x82")
	r := w.take(work)
	w.is.Equal("a", r.Text)
	w.is.EqualValues(1, r.NextOffset)
	w.is.EqualValues(3, r.Snapshot.OutputBytes)
	w.is.Empty(w.take(work).Text)
	work.Output.Append("\xac\xf0\x9f")
	w.is.Equal("€", w.take(work).Text)
	work.Complete("")
	r = w.take(work)
	w.is.Equal("\uFFFD", r.Text, "what can no longer become valid is shown")
	w.is.EqualValues(6, r.NextOffset)
	w.is.True(r.EOF)
}

func readSkips(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	d := w.holdWith(work, registry.ReadOptions{LimitBytes: 2})
	w.is.Zero(d.Skipped)
	w.is.NoError(d.Confirm())
	work.Output.Drop(7)
	r := w.take(work)
	w.is.Equal("789", r.Text)
	w.is.EqualValues(7, r.Offset)
	w.is.EqualValues(5, r.Skipped)
	w.is.EqualValues(7, r.Dropped)
	work.Output.Append("ab")
	work.Output.Drop(3)
	r = w.take(work)
	w.is.Equal("ab", r.Text)
	w.is.Zero(r.Skipped, "what was read before it was dropped was not skipped")
	w.is.EqualValues(10, r.Dropped)
	work.Output.Append("cd")
	work.Output.Drop(4)
	r = w.take(work)
	w.is.Empty(r.Text)
	w.is.EqualValues(2, r.Skipped, "everything unread is gone")
	w.is.EqualValues(14, r.NextOffset)
}

func readLimit(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("a€bcd")
	for _, want := range []string{"a", "€", "bc"} {
		d := w.holdWith(work, registry.ReadOptions{LimitBytes: 2})
		w.is.Equal(want, d.Text)
		w.is.NoError(d.Confirm())
	}
	for _, limit := range []int64{0, registry.MaxPageBytes + 1, 1 << 60} {
		d := w.holdWith(work, registry.ReadOptions{LimitBytes: limit})
		w.is.Equal("d", d.Text)
		d.Abandon()
	}
	w.is.EqualValues(registry.MaxPageBytes, work.Output.WidestPage(), "larger limits are clamped")
}

func readNoWait(w *world) {
	work := w.start(alice(), Script{})
	before := time.Now()
	for _, wait := range []time.Duration{0, -1, -time.Hour} {
		d := w.holdWith(work, registry.ReadOptions{Wait: wait})
		w.is.Equal(registry.StatusRunning, d.Snapshot.Status)
		d.Abandon()
	}
	w.is.Zero(time.Since(before))
}

func readAgain(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("precious")
	work.Complete("")
	w.is.Equal("precious", w.take(work).Text)
	for range 2 {
		w.is.Equal("precious", w.look(work, 0, registry.LookOptions{}).Text)
	}
}
