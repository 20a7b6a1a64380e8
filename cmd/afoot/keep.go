package main

import (
	"context"
	"path/filepath"
	"time"

	"afoot/registry"
	"afoot/registry/journal"
	"afoot/sse"
)

// journalPatience bounds the last writes of a journal whose disk is in trouble.
const journalPatience = 5 * time.Second

// journalPath is where the journal of a state directory lies.
func journalPath(dir string) string { return filepath.Join(dir, journalName) }

// openJournal opens the journal, and the hub that goes on where it ended. In memory
// there is none.
func (h *house) openJournal(ctx context.Context) (err error) {
	config := sse.Config{
		Heartbeat:            h.cfg.Heartbeat,
		WriteTimeout:         h.cfg.WriteTimeout,
		MaxStreamsPerSession: int(h.cfg.MaxStreamsPerSession),
		Logger:               h.log,
	}
	if !h.cfg.inMemory() {
		h.journal, err = journal.Open(journal.Config{
			Path:    journalPath(h.state.dir),
			Full:    h.cfg.Sync == SyncFull,
			Logger:  h.log,
			Observe: h.meters.committed,
		})
		if err != nil {
			return err
		}
		config.Journal = h.journal.Notices()
	}
	h.hub, err = sse.OpenHub(ctx, config)
	return err
}

// rows is the journal as the registry takes it; nil, and not a nil journal, where there
// is none.
func (h *house) rows() registry.Journal {
	if h.journal == nil {
		return nil
	}
	return h.journal
}

// restore brings back what an earlier daemon knew, before the first request, and gives
// back the output that nobody can ask for any more.
func (h *house) restore(ctx context.Context) error {
	if err := h.service.Load(ctx); err != nil {
		return err
	}
	h.bash.EndUnclaimed()
	if err := h.api.Reconcile(ctx); err != nil {
		return err
	}
	removed, err := h.store.Sweep()
	if err != nil {
		// It takes room, and harms nobody.
		h.log.Warn("output of an earlier daemon can't be removed", keyError, err)
	}
	if removed > 0 {
		h.log.Info("output of an earlier daemon was removed", keyCount, removed)
	}
	return nil
}

// closeJournal writes what is left to write.
func (h *house) closeJournal() error {
	if h.journal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), journalPatience)
	defer cancel()
	return h.journal.Close(ctx)
}
