package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// When the log is moved into the database: at rest, when it has that many pages and
// nobody waits, or when it has so many that they have to. Beyond the last number
// nothing is written while it cannot be moved.
const (
	restAfter  = 5 * time.Second
	enoughWAL  = 1000
	muchWAL    = 4000
	tooMuchWAL = 16384
)

// How long the writer in trouble waits before it tries again.
const (
	firstTry = 50 * time.Millisecond
	lastTry  = 5 * time.Second
	// checkBound is how long who asks waits for a trial.
	checkBound = time.Second
)

// writer is what the writing goroutine knows. Nobody else touches it.
type writer struct {
	disk *disk
	// db is nil when it has to be opened again.
	db      *db
	reserve reserve
	// The three troubles: rows cannot be written, the log cannot be moved, the
	// reserve is used.
	write, move, space error
	since              time.Time
	pause              time.Duration
	// retried is when the last trial that somebody asked for began.
	retried time.Time
	// due is when the timer was last set to ring; zero when it rests.
	due   time.Time
	timer *time.Timer
}

func (w *writer) trouble() error {
	switch {
	case w.write != nil:
		return w.write
	case w.move != nil:
		return w.move
	}
	return w.space
}

// run writes until the journal is closed.
func (j *Journal) run() {
	defer close(j.done)
	w := &j.writer
	for {
		j.arm()
		select {
		case <-j.line.wake:
			if w.write == nil {
				j.flush()
			}
		case <-j.poke:
			w.pause = 0
			j.heal()
		case <-w.timer.C:
			w.due = time.Time{}
			if w.trouble() != nil {
				j.heal()
			} else {
				j.rest()
			}
		case job := <-j.jobs:
			job()
		case ctx := <-j.quit:
			j.left = j.finish(ctx)
			return
		}
	}
}

// arm sets the timer for what comes if nothing else does. Writes do not put it off.
func (j *Journal) arm() {
	w := &j.writer
	wait := time.Duration(0)
	switch {
	case w.trouble() != nil:
		wait = max(w.pause, firstTry)
	case w.db != nil && w.db.pages > 0:
		wait = restAfter
	}
	switch due := time.Now().Add(wait); {
	case wait == 0:
		w.due = time.Time{}
		w.timer.Stop()
	case w.due.IsZero() || due.Before(w.due):
		w.due = due
		w.timer.Reset(wait)
	}
}

// flush writes everything in line.
func (j *Journal) flush() {
	w := &j.writer
	if w.move != nil && w.db != nil && w.db.pages > tooMuchWAL {
		j.fail(w.move)
		return
	}
	batch := j.line.take()
	if len(batch) == 0 {
		w.write = nil
		j.line.landed(batch)
		j.tell()
		return
	}
	begun := time.Now()
	rows := len(batch)
	err := j.write(batch)
	if j.cfg.Observe != nil {
		j.cfg.Observe(time.Since(begun), rows, err)
	}
	if err != nil {
		w.write = storageError(err)
		j.tell() // before anybody can hear of it by Sync
		j.line.back(batch, w.write)
		j.doubt(err)
		return
	}
	w.write = nil
	j.tell()
	j.stats.landed(rows, time.Since(begun))
	j.line.landed(batch)
	if pages := w.db.pages; pages >= muchWAL || pages >= enoughWAL && j.line.length() == 0 {
		j.rest()
	}
}

// write writes a batch, on the reserve if need be.
func (j *Journal) write(batch map[key]change) error {
	w := &j.writer
	if w.db == nil {
		if err := j.reopen(); err != nil {
			return err
		}
	}
	err := w.db.write(batch)
	if err == nil || !full(err) || !w.reserve.held {
		return err
	}
	w.space = storageError(err)
	w.reserve.release()
	j.tell()
	return w.db.write(batch)
}

// fail stops the writing without having tried.
func (j *Journal) fail(err error) {
	j.writer.write = err
	j.tell()
	j.line.stick(err)
}

// doubt gives up a connection that has met more than a full disk: what is on disk
// is read anew.
func (j *Journal) doubt(err error) {
	w := &j.writer
	if w.db != nil && !full(err) {
		w.db.drop()
		w.db = nil
	}
}

func (j *Journal) reopen() error {
	w := &j.writer
	c, err := connect(j.cfg.Path, w.disk, j.cfg.Full)
	if err != nil {
		return err
	}
	if _, err := c.identify(j.cfg.Path, schema()); err != nil {
		c.drop()
		return err
	}
	w.db = c
	return nil
}

// rest moves the log into the database.
func (j *Journal) rest() {
	w := &j.writer
	if w.db == nil {
		return
	}
	err := w.db.checkpoint(sqlite3.CHECKPOINT_PASSIVE)
	if err == nil {
		w.move = nil
	} else {
		w.move = storageError(err)
		j.doubt(err)
	}
	j.tell()
}

// heal tries whether the trouble is over.
func (j *Journal) heal() {
	w := &j.writer
	if w.trouble() == nil {
		return
	}
	w.pause = min(max(2*w.pause, firstTry), lastTry)
	if w.db == nil {
		if err := j.reopen(); err != nil {
			j.fail(storageError(err))
			return
		}
	}
	if w.move != nil {
		j.rest()
	}
	if w.write != nil {
		j.flush()
	}
	if w.write != nil || w.move != nil {
		return
	}
	w.space = nil
	if !w.reserve.held {
		// Twice the room: on a disk that is still full the trouble would begin again
		// with the next row.
		if err := w.reserve.take(2 * reserveBytes); err != nil {
			w.space = storageError(err)
		}
	}
	j.tell()
}

// retry heals for somebody who asked at that time. Those who ask at once share one
// trial.
func (j *Journal) retry(asked time.Time) {
	w := &j.writer
	if w.retried.After(asked) {
		return
	}
	w.retried = time.Now()
	w.pause = 0
	j.heal()
}

// tell makes the state of things known, and logs its changes.
func (j *Journal) tell() {
	w := &j.writer
	now := w.trouble()
	was := j.refusal.Load()
	switch {
	case now != nil:
		j.refusal.Store(&now)
		if was == nil {
			w.since = time.Now()
			j.stats.begun.Add(1)
			j.log.Error("journal in trouble", "error", now, "file", j.cfg.Path)
		}
	case was != nil:
		j.refusal.Store(nil)
		w.pause = 0
		j.log.Info("journal healed", "file", j.cfg.Path, "after", time.Since(w.since))
	}
}

// withDB runs a job.
func (j *Journal) withDB(job func(*db) error) error {
	w := &j.writer
	if w.db == nil {
		return w.trouble()
	}
	w.db.disk.forget()
	return job(w.db)
}

// finish writes what is left and closes. It tries until ctx ends.
func (j *Journal) finish(ctx context.Context) error {
	w := &j.writer
	defer w.timer.Stop()
	defer w.disk.close()
	j.flush()
	for w.write != nil && ctx.Err() == nil {
		j.arm()
		select {
		case <-w.timer.C:
			w.due = time.Time{}
		case <-j.poke:
		case <-ctx.Done():
		}
		j.heal()
	}
	left := j.line.length()
	j.line.stick(errClosed)
	var err error
	if w.write != nil {
		err = fmt.Errorf("%d rows were not written: %w", left, w.write)
	}
	if w.db == nil {
		return err
	}
	return errors.Join(err, w.db.close())
}
