package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"
)

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon go on as the binary now on disk",
		Long: `Has the daemon of the state directory go on, with the same process id and all its tasks,
as the binary that now lies where it was started from, and with AFOOT_ENV_FILE read
again. SIGUSR2 does the same. Returns when that one serves.

If anything is wrong with the configuration or with the binary, nothing changes, and the
answer says why. The address, the state directory, AFOOT_NET and AFOOT_RUN_AS need a
restart: while one of them has changed, the binary stays, and only bounds of tasks, agents
and streams, webhooks, the grace, retention, the log level and the key set are taken up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := ask(cmd.Context(), a.cfg.StateDir, order{Do: controlReload})
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return a.errNoDaemon()
			case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
				return errors.New("the daemon ended before it could answer, and its tasks with it; its log says why")
			case err != nil:
				return err
			case a.json:
				return a.printJSON(map[string]any{"lines": answer.Lines})
			}
			for _, line := range answer.Lines {
				if err := a.println(line); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) errNoDaemon() error {
	return exitError{code: exitNoDaemon, err: fmt.Errorf("no daemon runs with the state directory %s", a.cfg.StateDir)}
}
