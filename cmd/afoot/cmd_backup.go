package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"afoot/registry/journal"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the journal into a new file",
		Long: `Writes the journal as it is now into FILE, which must not be there yet: tasks with
their ends, counters, agents, notices, idempotency keys, webhooks with their secrets. It
may run while the daemon does; all that was answered before is in it.

Not in it are the captured output, which may be large (copy the directory "output" while
no daemon runs), and the secret, with which whoever finds the copy could make tokens: a
new one is made where it is missing, and tokens of the old one end.

To go back to it, stop the daemon, put FILE in the place of journal.db in the state
directory, and remove the files named like journal.db beside it.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: inOrder(anyFile),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if a.cfg.inMemory() {
				return usageErrorf("a daemon with %s_STATE_DIR=%s keeps nothing that could be backed up", envPrefix, memoryState)
			}
			_, err = ask(cmd.Context(), a.cfg.StateDir, order{Do: controlBackup, File: path})
			if errors.Is(err, fs.ErrNotExist) {
				err = a.backupAlone(cmd.Context(), path)
			}
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return fmt.Errorf("backup: %w", err)
			}
			if a.json {
				return a.printJSON(map[string]any{"file": path, "bytes": info.Size()})
			}
			return a.println(fmt.Sprintf("the journal is in %s, %d bytes; the secret and captured output are not", path, info.Size()))
		},
	}
}

// backupAlone copies the journal of a daemon that does not run.
func (a *app) backupAlone(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(journalPath(a.cfg.StateDir)); err != nil {
		return fmt.Errorf("there is no journal to back up: %w", err)
	}
	at, err := openState(a.cfg, "", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	j, err := journal.Open(journal.Config{Path: journalPath(at.dir)})
	if err != nil {
		return err
	}
	err = j.Backup(ctx, path)
	return errors.Join(err, j.Close(ctx))
}
