package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var look bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether the state directory is sound, and mend what is safe to mend",
		Long: `Looks at the state directory: its permissions, whether a daemon runs, the secret, the
journal, captured output without a task and tasks without their output, processes and
control groups that a dead daemon left.

What can be mended without losing anything is mended if no daemon runs, and said. A
damaged journal is never touched. Exit code 0: all is well now; 1: something is wrong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.cfg.inMemory() {
				return usageErrorf("with %s_STATE_DIR=%s there is nothing to look at", envPrefix, memoryState)
			}
			d := &doctor{cfg: a.cfg, dir: a.cfg.StateDir, look: look, repair: !look}
			d.examine(cmd.Context())
			if err := a.report(d.findings); err != nil {
				return err
			}
			if slices.ContainsFunc(d.findings, func(f finding) bool { return f.State == findingWrong }) {
				return exitError{code: exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&look, "dry-run", false, "only look, and mend nothing")
	return cmd
}

func (a *app) report(findings []finding) error {
	if a.json {
		return a.printJSON(map[string]any{"findings": findings})
	}
	for _, f := range findings {
		if err := a.println(fmt.Sprintf("%-8s  %-9s  %s", f.State, f.Check, f.Text)); err != nil {
			return err
		}
	}
	return nil
}
