package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// leftoverCases: what outlived its task is still owned. It is stopped by a kill
// of the ended task, by its purge, by its owner's end and by that of the service.
func leftoverCases() []testCase {
	bound := Options{TeardownTimeout: 8 * time.Second}
	return []testCase{
		{name: "a kill of an ended task stops what is left and does not wait", run: leftoverKill},
		{name: "a purge stops what is left before the output is given back", run: leftoverPurge},
		{name: "a purge whose caller leaves goes on", run: leftoverPurgeLeft},
		{name: "the owner's end awaits what is left", options: bound, run: leftoverDispose},
		{name: "the end of the service awaits what is left", options: bound, run: leftoverClose},
		{name: "what is left and does not go holds no end up for ever", options: bound, run: leftoverStuck},
		{name: "nothing else stops what is left", run: leftoverKept},
	}
}

// remains is what is left of one task, until it is told that it has gone.
type remains struct {
	stops []string
	gone  chan struct{}
}

// leaves gives an ended task of an agent, and what is left of it.
func (w *world) leaves(c registry.Caller) (*Work, *remains) {
	w.t.Helper()
	left := &remains{gone: make(chan struct{})}
	work := w.start(c, Script{Leftovers: func(reason string) <-chan struct{} {
		left.stops = append(left.stops, reason)
		return left.gone
	}})
	work.Output.Append("abc")
	work.Complete("exit code: 0; 1 process left running")
	w.settled()
	// The case may have ended without them.
	w.t.Cleanup(left.end)
	return work, left
}

func (r *remains) end() {
	select {
	case <-r.gone:
	default:
		close(r.gone)
	}
}

func leftoverKill(w *world) {
	work, left := w.leaves(alice())
	before := time.Now()
	outcome, s := w.kill(work, "enough")
	w.is.Zero(time.Since(before))
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.is.Equal(registry.StatusCompleted, s.Status)
	w.is.Equal([]string{"enough"}, left.stops)
	w.is.Empty(work.Cancels())
	w.is.Equal("abc", w.take(work).Text)
}

func leftoverPurge(w *world) {
	work, left := w.leaves(alice())
	c := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Purge(ctx, alice(), work.ID)
	})
	w.pass(time.Second)
	w.is.Len(left.stops, 1)
	w.is.Zero(work.Discards())
	left.end()
	_, err := c.result()
	w.is.NoError(err)
	w.settled()
	w.is.Equal(1, work.Discards())
	_, err = w.Get(w.ctx, alice(), work.ID)
	w.refused(err, registry.CodeGone)
}

func leftoverPurgeLeft(w *world) {
	work, left := w.leaves(alice())
	c := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Purge(ctx, alice(), work.ID)
	})
	w.settled()
	w.is.False(c.returned(), "something was still alive")
	c.leave()
	w.settled()
	w.is.True(c.returned(), "the purge outlasts its caller's patience")
	w.is.Equal(1, work.Discards(), "the purge waits for what is left though its caller has gone")
	_, err := w.Get(w.ctx, alice(), work.ID)
	w.refused(err, registry.CodeGone)
	left.end()
	w.settled()
	w.is.Len(left.stops, 1)
	w.is.Equal(1, work.Discards())
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
}

func leftoverDispose(w *world) {
	agent := w.open(alice(), 0)
	work, left := w.leaves(agent)
	other, others := w.leaves(alice())
	d := w.disposing(alice(), agent.Agent)
	w.pass(time.Second)
	w.is.Len(left.stops, 1)
	w.is.False(d.returned(), "something of the agent was still alive")
	left.end()
	_, err := d.result()
	w.is.NoError(err)
	_, err = w.Get(w.ctx, alice(), work.ID)
	w.refused(err, registry.CodeGone)
	w.is.Equal(1, work.Discards())
	w.is.Empty(others.stops)
	w.is.Zero(other.Discards())
}

func leftoverClose(w *world) {
	work, left := w.leaves(alice())
	_, unowned := w.leaves(nobody())
	c := w.closing()
	w.pass(time.Second)
	w.is.Len(left.stops, 1)
	w.is.Len(unowned.stops, 1)
	left.end()
	w.settled()
	w.is.False(c.returned(), "something was still alive")
	unowned.end()
	_, err := c.result()
	w.is.NoError(err)
	w.is.Equal(registry.StatusCompleted, w.get(work).Status)
	w.is.Zero(work.Discards())
}

func leftoverStuck(w *world) {
	agent := w.open(alice(), 0)
	work, left := w.leaves(agent)
	other, others := w.leaves(alice())
	before := time.Now()
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.is.LessOrEqual(time.Since(before), 8*time.Second+tick)
	w.settled()
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
	w.is.Len(left.stops, 1)
	w.is.Equal(1, work.Discards(), "what is stored goes though something is left")
	before = time.Now()
	_, err := w.closing().result()
	w.is.NoError(err)
	w.is.LessOrEqual(time.Since(before), 8*time.Second+tick)
	w.is.Len(others.stops, 1)
	w.is.Zero(other.Discards(), "the record is kept")
}

func leftoverKept(w *world) {
	work, left := w.leaves(alice())
	w.look(work, 0, registry.LookOptions{})
	w.take(work)
	w.pass(time.Hour)
	w.is.Empty(left.stops)
}
