package main

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// insistPause lies between two tries to write what found no room.
const insistPause = time.Second

// insistence goes on trying to write something; nil does nothing.
type insistence struct {
	quit chan struct{}
	work sync.WaitGroup
}

// insist writes something that the daemon can do without: on a full disk it warns with
// what that means, and tries again until it works or is closed.
func insist(log *slog.Logger, means string, write func() error) (*insistence, error) {
	err := write()
	if !noRoom(err) {
		return nil, err
	}
	log.Warn("there is no room for a file, it is written later", keyError, err, "meaning", means)
	i := &insistence{quit: make(chan struct{})}
	i.work.Go(func() {
		for noRoom(err) {
			select {
			case <-i.quit:
				return
			case <-time.After(insistPause):
			}
			err = write()
		}
		if err != nil {
			log.Error("a file can't be written", keyError, err)
		}
	})
	return i, nil
}

func noRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// close ends the trying.
func (i *insistence) close() {
	if i == nil {
		return
	}
	close(i.quit)
	i.work.Wait()
}
