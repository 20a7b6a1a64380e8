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
	"time"

	"afoot/producers/proc"
)

// secondLook bounds the end of what a dead daemon left, where its watchdog did not
// manage.
const secondLook = 5 * time.Second

// writeWill keeps what this daemon would leave, for the next one.
func writeWill(dir string, will proc.Remains) error {
	text, err := json.Marshal(will)
	if err != nil {
		return fmt.Errorf("%s file: %w", remainsName, err)
	}
	return writeWhole(dir, remainsName, append(text, '\n'))
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
	var will proc.Remains
	if err := json.Unmarshal(text, &will); err != nil {
		log.Warn("what an earlier daemon may have left running is not known", "file", remainsName, "error", err.Error())
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, secondLook)
	defer cancel()
	ended, err := proc.EndRemains(ctx, will, nil, proc.Ticks())
	switch {
	case err != nil:
		log.Error("an earlier daemon's processes are left", "error", err.Error())
	case ended > 0:
		log.Warn("processes of an earlier daemon were ended", "count", ended)
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
