package journal

import (
	"context"
	"errors"
)

// HandOver writes all that is in line and closes the database, so that another image of
// this process can open it. What is appended from then on waits for [Journal.TakeBack],
// and so does who waits for it. An error, also that of trouble, says that nothing has
// changed.
func (j *Journal) HandOver(ctx context.Context) error {
	result := make(chan error, 1)
	back := make(chan struct{})
	j.backMu.Lock()
	defer j.backMu.Unlock()
	if j.back != nil {
		return errors.New("the journal was handed over")
	}
	task := func() {
		err := ctx.Err()
		if err == nil {
			err = j.leave()
		}
		result <- err
		if err == nil {
			<-back
			j.arrive()
		}
	}
	select {
	case j.jobs <- task:
	case <-j.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := <-result; err != nil {
		return err
	}
	j.back = back
	return nil
}

// TakeBack undoes HandOver.
func (j *Journal) TakeBack() {
	j.backMu.Lock()
	defer j.backMu.Unlock()
	if j.back != nil {
		close(j.back)
		j.back = nil
	}
}

// leave closes the database with everything in it. The writer's goroutine calls it.
func (j *Journal) leave() error {
	w := &j.writer
	j.flush()
	if w.write != nil {
		return w.write
	}
	if w.db == nil {
		return w.trouble()
	}
	err := w.db.close()
	w.db = nil
	if err != nil {
		j.arrive()
		return storageError(err)
	}
	return nil
}

// arrive opens the database again.
func (j *Journal) arrive() {
	if err := j.reopen(); err != nil {
		j.fail(storageError(err))
		return
	}
	j.flush()
}
