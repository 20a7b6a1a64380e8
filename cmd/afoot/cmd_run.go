package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"afoot/api/client"
)

// runName is the command whose exit code is the task's.
const runName = "run"

// runOptions are the flags of `afoot run`.
type runOptions struct {
	detach  bool
	label   string
	workdir string
	env     []string
	timeout time.Duration

	stdin, streams, leftovers string
	nice                      int
	memoryMax                 sizeFlag
	pidsMax                   *int64
}

// sizeFlag is a flag with a size.
type sizeFlag struct{ Size }

// Set implements [pflag.Value].
func (s *sizeFlag) Set(value string) error { return s.Decode(value) }

// Type implements [pflag.Value].
func (s *sizeFlag) Type() string { return "size" }

// String implements [pflag.Value].
func (s *sizeFlag) String() string {
	if s.Size == 0 {
		return ""
	}
	return strconv.FormatInt(int64(s.Size), 10)
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	var pidsMax int64
	cmd := &cobra.Command{
		Use:   runName + " [flags] [--] CMD…",
		Short: "Run a command as a task",
		Long: `Runs a command as a task, prints its output as it comes and exits with its code:
128 plus the number of the signal if one ended it, 125 if afoot itself failed, be it
that it was not understood, 130 if the task was left.

One argument is a line for the shell; several are a program and its arguments,
taken literally. Ctrl-C stops the task, a second one leaves it.

On the machine of the daemon the task runs in the current directory. Its
environment is the daemon's; --env NAME=value adds to it, --env NAME takes the
value from here.`,
		Example: `  afoot run -- make test
  afoot run 'for i in 1 2 3; do echo $i; sleep 1; done'
  id=$(afoot run --detach --label "nightly build" -- make all)`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: anyFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("pids-max") {
				o.pidsMax = &pidsMax
			}
			return a.run(cmd.Context(), o, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.BoolVarP(&o.detach, "detach", "d", false, "print the id and leave the task running")
	flags.StringVar(&o.label, "label", "", "one line that says what it is (default: the command)")
	flags.StringVar(&o.workdir, "workdir", "", "directory to run in")
	flags.StringArrayVar(&o.env, "env", nil, "NAME=value or NAME, may be repeated")
	flags.DurationVar(&o.timeout, "timeout", 0, "end the task after so long (default: never)")
	choose(cmd, &o.stdin, "stdin", "null, or open: it reads what is typed here, or what afoot input sends", "null", "open")
	choose(cmd, &o.streams, "streams", "merged, or split: standard error apart", "merged", "split")
	choose(cmd, &o.leftovers, "leftovers", "keep, or stop: what outlives the command is stopped", "keep", "stop")
	flags.IntVar(&o.nice, "nice", 0, "how willingly it lets others go first, -20 to 19")
	flags.Var(&o.memoryMax, "memory-max", "most memory of all its processes, such as 512MiB")
	flags.Int64Var(&pidsMax, "pids-max", 0, "most processes and threads at a time")
	_ = cmd.MarkFlagDirname("workdir") // there is such a flag
	return cmd
}

func (a *app) run(ctx context.Context, o runOptions, args []string) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	request, err := a.startRequest(o, args, r.near)
	if err != nil {
		return err
	}
	// From here on Ctrl-C is the task's affair.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	started, err := a.start(ctx, r, request, signals)
	if err != nil {
		return err
	}
	switch {
	case o.detach && a.json:
		return a.printJSON(started)
	case o.detach:
		if err := a.println(started.Id); err != nil {
			return fmt.Errorf("task %s runs: %w", started.Id, err)
		}
		return nil
	default:
		return a.attend(ctx, r, started.Id, o, signals)
	}
}

// startPatience is what a start gets to be answered after the first signal.
const startPatience = 2 * time.Second

// start starts the task. A signal that comes before the answer is left for who attends to
// the task; a second one, or no answer for a while, gives up.
func (a *app) start(ctx context.Context, r *remote, request client.StartTask, signals chan os.Signal) (client.Snapshot, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		task client.Snapshot
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		task, err := a.startAgain(ctx, r, request)
		answered <- answer{task, err}
	}()
	var got answer
	var first os.Signal
	select {
	case got = <-answered:
		return got.task, got.err
	case first = <-signals:
	}
	select {
	case got = <-answered:
	case <-signals:
		cancel()
		got = <-answered
	case <-time.After(startPatience):
		cancel()
		got = <-answered
	}
	if errors.Is(got.err, context.Canceled) {
		fmt.Fprintln(a.stderr, "afoot: the start was not answered, and the task may run all the same: `afoot ls` tells")
		return got.task, exitError{code: exitSignal + int(unix.SIGINT)}
	}
	select {
	case signals <- first:
	default: // more have come
	}
	return got.task, got.err
}

// startAgain starts the task, and comes again where the answer was lost, with the same key,
// so that it is started once.
func (a *app) startAgain(ctx context.Context, r *remote, request client.StartTask) (client.Snapshot, error) {
	params := &client.StartTaskParams{AfootAgent: a.header(), IdempotencyKey: optional(rand.Text())}
	lost := false
	for begun := time.Now(); ; {
		task, err := decode[client.Snapshot](r.StartTask(ctx, params, request))
		lost = lost || brokenOff(err)
		if again := brokenOff(err) || lost && unreachable(err); !again || time.Since(begun) > replacePatience {
			return task, err
		}
		select {
		case <-time.After(replacePatience / 100):
		case <-ctx.Done():
			return task, ctx.Err()
		}
	}
}

// startRequest words the flags as a start request.
func (a *app) startRequest(o runOptions, args []string, near bool) (client.StartTask, error) {
	var request client.StartTask
	env, err := a.taskEnv(o.env)
	if err != nil {
		return request, err
	}
	if o.timeout < 0 || o.timeout > 0 && o.timeout < time.Millisecond {
		return request, usageErrorf("--timeout %s: must be at least 1ms", o.timeout)
	}
	switch {
	case !near:
	case o.workdir == "":
		// A directory that is gone is not named: the daemon's default holds then.
		o.workdir, _ = os.Getwd()
	default:
		if o.workdir, err = filepath.Abs(o.workdir); err != nil {
			return request, usageErrorf("--workdir: %w", err)
		}
	}
	start := client.StartBash{
		Kind:      client.Bash,
		Command:   commandLine(args),
		Label:     optional(o.label),
		Workdir:   optional(o.workdir),
		TimeoutMs: optional(o.timeout.Milliseconds()),

		Stdin:          optional(client.StartBashStdin(o.stdin)),
		Streams:        optional(client.StartBashStreams(o.streams)),
		Leftovers:      optional(client.StartBashLeftovers(o.leftovers)),
		Nice:           optional(o.nice),
		MemoryMaxBytes: optional(int64(o.memoryMax.Size)),
		PidsMax:        o.pidsMax,
	}
	if len(env) > 0 {
		start.Env = &env
	}
	if err := request.FromStartBash(start); err != nil {
		return request, fmt.Errorf("start request: %w", err)
	}
	return request, nil
}

// taskEnv reads the --env flags.
func (a *app) taskEnv(pairs []string) (map[string]string, error) {
	env := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		if name == "" {
			return nil, usageErrorf("--env %q: no name", pair)
		}
		if !given {
			var found bool
			if value, found = a.cfg.lookup(name); !found {
				return nil, usageErrorf("--env %s: it is not set here", name)
			}
		}
		env[name] = value
	}
	return env, nil
}

// commandLine makes what bash gets: one argument as it is, several quoted so that
// bash takes each literally.
func commandLine(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = shellQuote(arg)
	}
	return strings.Join(quoted, " ")
}

// shellQuote leaves plain words alone and puts everything else between single
// quotes.
func shellQuote(arg string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+"
	if arg != "" && strings.Trim(arg, plain) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
