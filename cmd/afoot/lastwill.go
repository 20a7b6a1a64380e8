package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"afoot/producers/proc"
)

// secondLook bounds the end of what a dead daemon left, where its watchdog did not
// manage.
const secondLook = 5 * time.Second

// lastWill is what has to be done when the daemon dies.
type lastWill struct {
	proc.Remains
	// Scratch is a directory that goes with the daemon.
	Scratch string `json:"scratch,omitempty"`
}

// write keeps it for the next daemon.
func (w lastWill) write(dir string) error {
	text, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("%s file: %w", remainsName, err)
	}
	return writeWhole(dir, remainsName, append(text, '\n'))
}

// keep writes it. A daemon starts without it: it is only needed if the watchdog dies
// together with the daemon.
func (w lastWill) keep(dir string, log *slog.Logger) (*insistence, error) {
	return insist(log, "if the watchdog dies together with this daemon the next one does not know what is left", func() error { return w.write(dir) })
}

// execute ends the processes of the list and whoever else is left, and says how many
// that were.
func (w lastWill) execute(ctx context.Context, list []proc.Kin, died uint64) (ended int, err error) {
	ended, err = proc.EndRemains(ctx, w.Remains, list, died)
	if w.Scratch != "" && strings.HasPrefix(filepath.Base(w.Scratch), scratchPrefix) {
		err = errors.Join(err, os.RemoveAll(w.Scratch))
	}
	return ended, err
}

// endPredecessor ends what an earlier daemon of the same state directory left running.
// The caller holds the lock, so that one is dead.
func endPredecessor(ctx context.Context, dir string, log *slog.Logger) error {
	text, err := os.ReadFile(filepath.Join(dir, remainsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s file: %w", remainsName, err)
	}
	var will lastWill
	if err := json.Unmarshal(text, &will); err != nil {
		log.Warn("what an earlier daemon may have left running is not known", "file", remainsName, keyError, err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, secondLook)
	defer cancel()
	ended, err := will.execute(ctx, nil, proc.Ticks())
	switch {
	case err != nil:
		log.Error("an earlier daemon's processes are left", keyError, err)
	case ended > 0:
		log.Warn("processes of an earlier daemon were ended", keyCount, ended)
	}
	return nil
}

// forgetWill says that nothing was left.
func forgetWill(dir string) error {
	if err := os.Remove(filepath.Join(dir, remainsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s file: %w", remainsName, err)
	}
	return nil
}
