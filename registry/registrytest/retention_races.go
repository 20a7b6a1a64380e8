package registrytest

import (
	"context"
	"errors"
	"sync"
	"time"

	"afoot/registry"
)

// retentionRaceCases: no record goes under an answer that is on its way.
func retentionRaceCases() []testCase {
	two := Options{RetainCount: 2}
	hour := Options{RetainAge: time.Hour}
	return []testCase{
		{name: "a delivery on its way holds its record", options: two, run: retainDelivery},
		{name: "what is reported meanwhile goes instead of a held record", options: two, run: retainInstead},
		{name: "a delivery on its way holds its record beyond the age", options: hour, run: retainDeliveryAged},
		{name: "a delivery from before the end holds its record too", options: hour, run: retainDeliveryLive},
		{name: "reads in the queue hold their record", options: hour, run: retainQueue},
		{name: "what was handed out can be acked, and then the record goes", options: hour, run: retainHandout},
		{name: "a handout holds its record no longer than its ack may take", options: hour, run: retainHandoutOver},
		{name: "a handout from just before the end holds its record as long", options: two, run: retainHandoutLive},
		{name: "a handout of long ago holds nothing", options: hour, run: retainHandoutOld},
		{name: "a lost read makes its end due first, then the record goes", options: hour, run: retainAbandoned},
		{name: "a read that comes while work is asked what is left holds the record", options: hour, run: retainAsked},
		{name: "a task that is no longer too many when it was asked stays", options: two, run: retainNotDue},
		{name: "the tasks of an ending agent go with it", options: hour, run: retainEnding},
		{name: "a purge while work is asked what is left discards once", options: hour, run: retainAskedPurge},
		{name: "the service may close while work is asked what is left", options: hour, run: retainAskedClose},
		{name: "work that is slow to be discarded holds nothing up", options: two, run: retainSlowDiscard},
		{name: "a read against eviction gives all or gone", options: two, run: retainReadRace},
		{name: "a purge against eviction removes once", options: two, run: retainPurgeRace},
		{name: "an agent's end against eviction removes once", options: two, run: retainDisposeRace},
		{name: "a replay against eviction never starts again", options: two, run: retainKeyRace},
	}
}

func retainDelivery(w *world) {
	a := w.reads(alice(), Script{})
	d := w.hold(a)
	b, c := w.ends(alice(), Script{}), w.ends(alice(), Script{})
	w.kept(a, b, c)
	w.is.NoError(d.Confirm())
	w.evicted(a)
	w.kept(b, c)
}

func retainInstead(w *world) {
	a := w.reads(alice(), Script{})
	d := w.hold(a)
	b, c := w.ends(alice(), Script{}), w.ends(alice(), Script{})
	w.kept(a, b, c)
	w.take(c)
	w.evicted(c)
	w.is.NoError(d.Confirm())
	w.kept(a, b)
}

func retainDeliveryAged(w *world) {
	a := w.ends(alice(), Script{})
	d := w.hold(a)
	w.pass(3 * time.Hour)
	w.kept(a)
	w.is.NoError(d.Confirm())
	w.evicted(a)
	w.tale(a, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported, registry.ChangeEvicted)
}

func retainDeliveryLive(w *world) {
	a := w.start(alice(), Script{})
	d := w.hold(a)
	a.Complete("")
	w.pass(3 * time.Hour)
	w.kept(a)
	w.is.NoError(d.Confirm())
	w.evicted(a)
}

func retainQueue(w *world) {
	a := w.ends(alice(), Script{})
	d := w.hold(a)
	second := w.reading(a, registry.ReadOptions{})
	w.pass(3 * time.Hour)
	w.is.NoError(d.Confirm())
	w.kept(a)
	got := w.delivered(second)
	w.kept(a)
	w.is.NoError(got.Confirm())
	w.evicted(a)
}

func retainHandout(w *world) {
	a := w.ends(alice(), Script{})
	w.pass(time.Hour - 10*time.Second)
	w.takeExplicit(a)
	w.pass(20 * time.Second)
	w.kept(a)
	w.ack(a, 3)
	w.evicted(a)
	w.tale(a, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported, registry.ChangeEvicted)
}

func retainHandoutOver(w *world) {
	for _, reported := range []bool{false, true} {
		a := w.ends(alice(), Script{})
		if reported {
			w.take(a)
		}
		w.pass(time.Hour - 10*time.Second)
		w.takeExplicit(a)
		w.pass(registry.AckHold - tick)
		w.kept(a)
		w.pass(tick)
		w.evicted(a)
		w.refused(w.Ack(w.ctx, alice(), a.ID, 3), registry.CodeGone)
	}
}

func retainHandoutLive(w *world) {
	for _, acked := range []bool{false, true} {
		a := w.start(alice(), Script{})
		a.Output.Append("abc")
		w.takeExplicit(a)
		w.kill(a, "")
		a.Complete("")
		w.pass(tick)
		b, c := w.reads(alice(), Script{}), w.reads(alice(), Script{})
		w.kept(a, c)
		w.evicted(b)
		d := w.ends(alice(), Script{})
		w.evicted(c)
		w.kept(a, d)
		if acked {
			w.ack(a, 3)
		} else {
			w.pass(registry.AckHold)
		}
		e := w.ends(alice(), Script{})
		w.evicted(a)
		w.kept(d, e)
		w.is.NoError(w.Purge(w.ctx, alice(), d.ID))
		w.is.NoError(w.Purge(w.ctx, alice(), e.ID))
	}
}

func retainNotDue(w *world) {
	g, begun := w.gate(), newGate()
	a := w.reads(alice(), Script{
		Leftovers: func(string) <-chan struct{} { return nil },
		Left: func() bool {
			begun.open()
			g.pass()
			return false
		},
	})
	b, c := w.reads(alice(), Script{}), w.reads(alice(), Script{})
	begun.pass()
	w.is.NoError(w.Purge(w.ctx, alice(), b.ID))
	g.open()
	w.kept(a, c)
	d := w.reads(alice(), Script{})
	w.evicted(a)
	w.kept(c, d)
}

func retainEnding(w *world) {
	agent := w.open(alice(), 0)
	a, slow := w.ends(agent, Script{}), w.start(agent, Script{})
	w.pass(time.Hour - time.Second)
	d := w.disposing(alice(), agent.Agent)
	w.pass(5 * time.Second)
	w.is.False(d.returned())
	w.is.Zero(a.Discards())
	slow.Complete("")
	_, err := d.result()
	w.is.NoError(err)
	w.is.Equal(1, a.Discards())
	w.is.Equal(1, w.log.count(a.ID, registry.ChangeRemoved))
	w.is.Zero(w.log.count(a.ID, registry.ChangeEvicted))
}

func retainHandoutOld(w *world) {
	a := w.start(alice(), Script{})
	a.Output.Append("abc")
	w.takeExplicit(a)
	w.pass(time.Minute)
	a.Complete("")
	w.pass(time.Hour)
	w.evicted(a)
	w.notices(a, 1)
}

func retainAbandoned(w *world) {
	a := w.start(alice(), Script{})
	d := w.promised(a, registry.ReadOptions{})
	w.pass(2 * time.Hour)
	w.kept(a)
	w.notices(a, 0)
	d.Abandon()
	w.evicted(a)
	w.tale(a, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeEvicted)
}

// asked is ended work that is being asked what is left of it.
func (w *world) asked() (*Work, *gate) {
	g, begun := w.gate(), newGate()
	a := w.ends(alice(), Script{
		Leftovers: func(string) <-chan struct{} { return nil },
		Left: func() bool {
			begun.open()
			g.pass()
			return false
		},
	})
	w.pass(2 * time.Hour)
	begun.pass()
	return a, g
}

func retainAsked(w *world) {
	a, g := w.asked()
	d := w.hold(a)
	w.is.Equal("abc", d.Text)
	g.open()
	w.kept(a)
	w.is.NoError(d.Confirm())
	w.evicted(a)
}

func retainAskedPurge(w *world) {
	a, g := w.asked()
	w.is.NoError(w.Purge(w.ctx, alice(), a.ID))
	g.open()
	w.settled()
	w.is.Equal(1, a.Discards())
	w.is.Equal(1, w.log.count(a.ID, registry.ChangeRemoved))
	w.is.Zero(w.log.count(a.ID, registry.ChangeEvicted))
	b := w.ends(alice(), Script{})
	w.pass(2 * time.Hour)
	w.evicted(b)
}

func retainAskedClose(w *world) {
	a, g := w.asked()
	c := w.closing()
	g.open()
	_, err := c.result()
	w.is.NoError(err)
	w.kept(a)
}

func retainSlowDiscard(w *world) {
	g := w.gate()
	slow := Script{Discard: func(*Work) error {
		g.pass()
		return nil
	}}
	w.reads(alice(), slow)
	for range 4 {
		w.reads(alice(), Script{})
	}
	b := w.start(bob(), Script{})
	w.is.Equal(registry.StatusRunning, w.get(b).Status)
	g.open()
	w.settled()
	w.is.Len(w.ids(alice(), registry.ListOptions{}), 2)
}

func retainReadRace(w *world) {
	for range 100 {
		a := w.reads(alice(), Script{Discard: func(work *Work) error {
			work.Output.Lose(errors.New("discarded"))
			return nil
		}})
		b := w.reads(alice(), Script{})
		last := w.start(alice(), Script{})
		var calls sync.WaitGroup
		for i := range 6 {
			calls.Go(func() {
				var text string
				var err error
				switch i % 3 {
				case 0:
					var r registry.Read
					r, err = w.Look(w.ctx, alice(), a.ID, 0, registry.LookOptions{})
					text = r.Text
				case 1:
					var log registry.RawLog
					if log, err = w.OpenLog(w.ctx, alice(), a.ID, ""); err == nil {
						text = "abc"
						_ = log.Close()
					}
				default:
					var d *registry.Delivery
					if d, err = w.Read(w.ctx, alice(), a.ID, registry.ReadOptions{}); err == nil {
						text = "abc" + d.Text
						err = d.Confirm()
					}
				}
				if registry.CodeOf(err) != registry.CodeGone && (err != nil || text != "abc") {
					w.t.Errorf("read %q, %v", text, err)
				}
			})
		}
		w.kill(last, "")
		last.Complete("")
		calls.Wait()
		w.settled()
		// A read that came first holds its record, and the next one goes instead.
		w.is.Len(w.ids(alice(), registry.ListOptions{}), 2)
		if a.Discards() == 0 {
			w.evicted(b)
			w.is.NoError(w.Purge(w.ctx, alice(), a.ID))
		} else {
			w.evicted(a)
		}
		w.pass(tick)
	}
}

func retainPurgeRace(w *world) {
	for range 40 {
		a := w.reads(alice(), Script{})
		w.reads(alice(), Script{})
		last := w.start(alice(), Script{})
		w.kill(last, "")
		c := begin(w.ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, w.Purge(ctx, alice(), a.ID) })
		last.Complete("")
		if _, err := c.result(); err != nil {
			w.refused(err, registry.CodeGone)
		}
		w.settled()
		w.is.Equal(1, a.Discards())
		w.is.Equal(1, w.log.count(a.ID, registry.ChangeRemoved)+w.log.count(a.ID, registry.ChangeEvicted))
		w.pass(tick)
	}
}

func retainDisposeRace(w *world) {
	for range 40 {
		agent := w.open(alice(), 0)
		works := []*Work{w.reads(agent, Script{}), w.reads(agent, Script{}), w.start(agent, Script{})}
		d := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.DisposeAgent(ctx, alice(), agent.Agent)
		})
		works[2].Complete("")
		_, err := d.result()
		w.is.NoError(err)
		w.settled()
		for _, work := range works {
			w.is.Equal(1, work.Discards())
			w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved)+w.log.count(work.ID, registry.ChangeEvicted))
		}
	}
}

func retainKeyRace(w *world) {
	for i := range byte(40) {
		r := w.keyed("key "+string('a'+rune(i)), i, Script{})
		started, err := w.Start(w.ctx, alice(), r)
		w.is.NoError(err)
		a := w.jobs.Work(started.Snapshot.ID)
		a.Complete("")
		w.take(a)
		w.pass(tick)
		w.reads(alice(), Script{})
		last := w.start(alice(), Script{})
		w.kill(last, "")
		starts := w.jobs.Starts()
		c := begin(w.ctx, func(ctx context.Context) (registry.Started, error) { return w.Start(ctx, alice(), r) })
		last.Complete("")
		again, err := c.result()
		if err != nil {
			w.refused(err, registry.CodeGone)
		} else {
			w.is.True(again.Replayed)
			w.is.Equal(a.ID, again.Snapshot.ID)
		}
		w.is.Equal(starts, w.jobs.Starts())
		w.evicted(a)
		w.pass(tick)
	}
}
