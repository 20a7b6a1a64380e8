package registrytest

import (
	"time"

	"afoot/registry"
)

// finalCases: rule 6 for work whose output comes with its outcome.
func finalCases() []testCase {
	return []testCase{
		{name: "empty while the task lives and the same each time afterwards", run: finalReads},
		{name: "a task that gave nothing reads empty", run: finalNothing},
		{name: "a terminal read reports", run: finalReports},
		{name: "an abandoned read leaves the notice due", run: finalAbandoned},
		{name: "a wait returns with the output", run: finalWait},
		{name: "offsets count the bytes of the final output", run: finalOffsets},
		{name: "a waiting look waits for the end", run: finalLook},
		{name: "a final output has no raw log", run: finalLog},
		{name: "a broken promise is told with the end", run: finalBroken},
		{name: "bytes that are no text show as one U+FFFD per maximal subpart", run: finalInvalid},
	}
}

func (work *Work) finish(output string) {
	work.Settle(registry.Outcome{Status: registry.StatusCompleted, Output: output})
}

func finalReads(w *world) {
	work := w.start(alice(), Script{Final: true})
	for range 2 {
		r := w.take(work)
		w.is.Empty(r.Text)
		w.is.False(r.EOF)
		w.is.Zero(r.Snapshot.OutputBytes)
	}
	work.finish("the answer")
	for range 3 {
		r := w.take(work)
		w.is.Equal("the answer", r.Text)
		w.is.Zero(r.Offset)
		w.is.EqualValues(10, r.NextOffset)
		w.is.True(r.EOF)
		w.is.EqualValues(10, r.Snapshot.OutputBytes)
	}
}

func finalNothing(w *world) {
	work := w.start(alice(), Script{Final: true})
	work.finish("")
	r := w.take(work)
	w.is.Empty(r.Text)
	w.is.True(r.EOF)
	w.is.Zero(r.NextOffset)
}

func finalReports(w *world) {
	work := w.start(alice(), Script{Final: true})
	w.take(work)
	work.finish("x")
	w.settled()
	w.is.True(w.take(work).Snapshot.Reported)
	w.take(work)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
}

func finalAbandoned(w *world) {
	work := w.start(alice(), Script{Final: true})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	work.finish("x")
	d := w.delivered(c)
	w.notices(work, 0)
	d.Abandon()
	w.notices(work, 1)
	w.is.Equal("x", w.take(work).Text)
}

func finalWait(w *world) {
	work := w.start(alice(), Script{Final: true})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	work.finish("x")
	d := w.delivered(c)
	w.is.Equal("x", d.Text)
	w.is.True(d.EOF)
	w.is.NoError(d.Confirm())
	w.notices(work, 0)
	w.is.True(w.get(work).Reported)
}

func finalOffsets(w *world) {
	work := w.start(alice(), Script{Final: true})
	_, err := w.Look(w.ctx, alice(), work.ID, 1, registry.LookOptions{})
	w.refused(err, registry.CodeInvalid)
	work.finish("a界b")
	for offset, want := range []string{"a界b", "界b", "界b", "界b", "b", ""} {
		r := w.look(work, int64(offset), registry.LookOptions{})
		w.is.Equal(want, r.Text, "offset %d", offset)
		w.is.EqualValues(5-len(want), r.Offset)
		w.is.EqualValues(5, r.NextOffset)
		w.is.True(r.EOF)
	}
	_, err = w.Look(w.ctx, alice(), work.ID, 6, registry.LookOptions{})
	w.refused(err, registry.CodeInvalid)
	r := w.look(work, 1, registry.LookOptions{LimitBytes: 1})
	w.is.Equal("界", r.Text)
	w.is.False(r.EOF)
	w.is.False(w.get(work).Reported)
}

func finalLook(w *world) {
	work := w.start(alice(), Script{Final: true})
	c := w.looking(work, 0, time.Minute)
	w.pass(time.Second)
	w.is.False(c.returned())
	work.finish("x")
	w.settled()
	w.is.True(c.returned())
	r, err := c.result()
	w.is.NoError(err)
	w.is.Equal("x", r.Text)
	w.is.True(r.EOF)
	w.notices(work, 1)
}

func finalLog(w *world) {
	work := w.start(alice(), Script{Final: true})
	_, err := w.OpenLog(w.ctx, alice(), work.ID, "")
	w.refused(err, registry.CodeConflict)
	work.finish("x")
	_, err = w.OpenLog(w.ctx, alice(), work.ID, "")
	w.refused(err, registry.CodeConflict)
}

func finalBroken(w *world) {
	work := w.start(alice(), Script{Final: true})
	work.settle(registry.Outcome{Status: registry.StatusCompleted, Output: "half"}, errBoom)
	r := w.take(work)
	w.is.Equal(registry.StatusFailed, r.Snapshot.Status)
	w.is.Contains(r.Snapshot.Detail, errBoom.Error())
	w.is.True(r.EOF)
}

func finalInvalid(w *world) {
	work := w.start(alice(), Script{Final: true})
	work.finish("a\xff\xfe\xe2\x82b")
	for range 2 {
		r := w.take(work)
		w.is.Equal("a\uFFFD\uFFFD\uFFFDb", r.Text)
		w.is.True(r.EOF)
	}
}
