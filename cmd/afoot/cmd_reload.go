package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
)

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon read its configuration again",
		Long: `Asks the daemon of the state directory to read AFOOT_ENV_FILE again and to take up what
may change while it runs: the bounds of tasks, agents and streams, the grace,
retention, the log level and the key set. SIGUSR2 does the same.

If anything is wrong with the configuration, or with a binary that was put in place of
the running one, nothing changes, and the answer says why.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := ask(cmd.Context(), a.cfg.StateDir, order{Do: controlReload})
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return a.errNoDaemon()
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
