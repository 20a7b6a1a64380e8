// Command bench measures what the daemon costs against plain Go: ratios taken in
// one run, floor and daemon in turns, printed as one table. It judges and never
// fails for being slow: a loaded machine is no defect.
//
//	go run ./e2e/bench [-quick] [-only collect,exit] [-bin bin/afoot]
//
// The daemon is the built binary in a process of its own; floors are measured by
// the same client in the same run. Two cases, "list" and "memory", need 100,000
// ended tasks and run the daemon's own rooms inside this process instead.
//
// Everything listens on loopback, and everything that is started is ended by its
// pid before the command returns.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// floorArg makes this binary the bare server of a floor instead.
const floorArg = "floor-server"

// options shape a run.
type options struct {
	bin   string
	quick bool
}

// pick gives the full or the quick size of something.
func (o options) pick(full, quick int) int {
	if o.quick {
		return quick
	}
	return full
}

// bench is one case: it measures and adds its rows.
type bench struct {
	name, about string
	run         func(context.Context, options, *table) error
}

func cases() []bench {
	return []bench{
		{"collect", "start and collect in one call, against bash by os/exec", collect},
		{"journal", "start and collect with a journal, against one in memory", journalCost},
		{"two", "start, then wait, against a bare server of the same two calls", twoCalls},
		{"exit", "a child's exit to its notice, against os/exec Wait", exitToNotice},
		{"streams", "idle event streams: memory each, and a settlement among them", idleStreams},
		{"waits", "blocked waits: memory each", blockedWaits},
		{"list", "ten tasks listed beside 100,000 ended ones of others", listing},
		{"memory", "memory of an ended task", endedMemory},
		{"bulk", "a task that writes 1 GiB while a client follows, against splice and sendfile", bulk},
		{"flood", "ten tasks at full speed: the daemon's memory", flood},
		{"woken", "a child's exit to the answer of a blocked wait, against os/exec Wait", exitToAnswer},
		{"idle", "1,000 running idle tasks: memory and processes", idleTasks},
		{"kept", "10,000 ended tasks kept: memory", keptTasks},
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == floorArg {
		if err := serveFloor(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var o options
	var only string
	flags.StringVar(&o.bin, "bin", "bin/afoot", "the daemon's binary")
	flags.BoolVar(&o.quick, "quick", false, "a short run: small counts, wide spread")
	flags.StringVar(&only, "only", "", "cases to run, by name and comma")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "bench measures the daemon against plain Go.")
		flags.PrintDefaults()
		fmt.Fprintln(flags.Output(), "the cases:")
		for _, c := range cases() {
			fmt.Fprintf(flags.Output(), "  %-8s %s\n", c.name, c.about)
		}
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := choose(only)
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.bin); err != nil {
		return fmt.Errorf("no binary to measure (make build makes it): %w", err)
	}
	busy := load() // before it is this command's own
	results := &table{}
	var failed []error
	for _, c := range wanted {
		fmt.Fprintf(progress, "%-8s %s … ", c.name, c.about)
		began := time.Now()
		err := c.run(ctx, o, results)
		fmt.Fprintf(progress, "%.1f s\n", time.Since(began).Seconds())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	results.print(out)
	if busy > float64(runtime.NumCPU()) {
		fmt.Fprintf(out, "\nThe machine was busy with other work (load %.1f on %d processors): ratios of times are not to be trusted.\n", busy, runtime.NumCPU())
	}
	return errors.Join(failed...)
}

// load gives the average number of runnable processes of the last minute; 0 where
// the system does not say.
func load() float64 {
	var one float64
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(data), &one)
	}
	return one
}

func choose(only string) ([]bench, error) {
	all := cases()
	if only == "" {
		return all, nil
	}
	var wanted []bench
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(c bench) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no case %q", name)
		}
		wanted = append(wanted, all[i])
	}
	return wanted, nil
}
