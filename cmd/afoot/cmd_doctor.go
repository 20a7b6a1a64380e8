package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var look, accept bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether the state directory is sound, and mend what is safe to mend",
		Long: `Looks at the state directory: its permissions, whether a daemon runs, the secret, the
journal, captured output without a task and tasks without their output, processes and
control groups that a dead daemon left.

What can be mended without losing anything is mended if no daemon runs, and said. A
damaged journal is not touched. Exit code 0: all is well now; 1: something is wrong.

With --accept-loss a journal whose write-ahead log (journal.db-wal) is damaged goes on with
what can be read of it. What was told since may be undone; ids are not given again,
and event streams meet a gap. The damaged files are kept as journal.db-lost, and output
whose task is not known any more in the directory output-lost.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.cfg.inMemory() {
				return usageErrorf("with %s_STATE_DIR=%s there is nothing to look at", envPrefix, memoryState)
			}
			if look && accept {
				return usageErrorf("--dry-run and --accept-loss exclude each other")
			}
			d := &doctor{cfg: a.cfg, dir: a.cfg.StateDir, look: look, repair: !look, accept: accept}
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
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "give up what is lost of a journal whose log is damaged, and go on with the rest")
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
