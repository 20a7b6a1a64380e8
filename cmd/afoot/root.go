package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// defaultSession is the session of commands that are told none.
const defaultSession = "local"

// app is what the commands share: the configuration, the streams and the flags
// that stand before or after any command.
type app struct {
	cfg    *Config
	stdout io.Writer
	stderr io.Writer
	from   *luggage // nil: a start like any other

	session string
	agent   string
	addr    string
	json    bool

	// parsed says that the command line was understood: errors before are usage.
	parsed bool
}

// newRoot builds the command tree around a.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "afoot",
		Short: "Background tasks for agents and people",
		Long: `Afoot runs long work in the background: start a command, get a short id, read its
output as it comes, wait for its end, stop it, and be told once when it ends.

Commands on the machine of the daemon find its address and its secret in the state
directory. Elsewhere, name the daemon by --addr and put a token into AFOOT_TOKEN.

Exit codes: 0 done; 1 the daemon refused or something broke; 2 wrong usage or
configuration; 3 no daemon answers; 130 Ctrl-C. "afoot run" exits with the code of the
task, and with 125 where afoot itself failed, wrong usage included.`,
		Version:       versionText(),
		Annotations:   map[string]string{noConfig: "yes"},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.parsed = true
			if cmd.Annotations[noConfig] != "" {
				return nil
			}
			cfg, err := loadConfig()
			if err != nil {
				return exitError{code: exitUsage, err: err}
			}
			a.cfg = cfg
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.session, "session", "", "session to act for (default: AFOOT_SESSION, else local; of token: none)")
	flags.StringVar(&a.agent, "agent", "", "agent to act as (default: the session's default agent)")
	flags.StringVar(&a.addr, "addr", "", "daemon to talk to: host:port, http(s)://… or unix:/path; needs AFOOT_TOKEN")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(
		a.serveCommand(), a.reloadCommand(), a.backupCommand(), a.doctorCommand(), a.tokenCommand(), a.secretCommand(),
		a.runCommand(), a.lsCommand(), a.outputCommand(), a.logsCommand(), a.inputCommand(), a.signalCommand(), a.killCommand(),
		a.eventsCommand(), a.mcpCommand(), a.openCommand(), a.agentsCommand(), a.webhooksCommand(), a.versionCommand(),
	)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	complete(root, "agent", a.knownIDs(a.agentIDs))
	wordUsage(root)
	return root
}

// noConfig marks commands that need no configuration.
const noConfig = "no-config"

// printJSON writes one value as one line.
func (a *app) printJSON(value any) error {
	if err := encodeJSON(a.stdout, value); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func encodeJSON(to io.Writer, value any) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

// println writes a line of results: what cannot be written is an error.
func (a *app) println(text string) error {
	if _, err := fmt.Fprintln(a.stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// group is for a command that only has others below it.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageErrorf("%s needs a command: see `%[1]s --help`", cmd.CommandPath())
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// sessionName is the session that commands act for.
func (a *app) sessionName() string {
	switch {
	case a.session != "":
		return a.session
	case a.cfg.Session != "":
		return a.cfg.Session
	default:
		return defaultSession
	}
}

// header gives the acting agent as the generated client takes it.
func (a *app) header() *string { return optional(a.agent) }

// optional gives nil for the zero value.
func optional[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// isTerminal reports whether a person may look at the file as it is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
