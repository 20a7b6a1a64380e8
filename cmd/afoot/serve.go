package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"afoot/api"
)

// Bounds of the HTTP server. There is no bound on a whole answer: waits and
// streams are long on purpose, and every write has a bound of its own.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Bounds of a shutdown: what it may take beyond the end of the tasks, and what
// clients get to finish once everything is answered.
const (
	shutdownSlack = 5 * time.Second
	hangUpTimeout = 500 * time.Millisecond
)

func (a *app) serveCommand() *cobra.Command {
	var link, check bool
	var scratch string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.addr != "":
				return usageErrorf("--addr is for commands that call a daemon; where it listens is said by %s_ADDR", envPrefix)
			case a.session != "" || a.agent != "":
				return usageErrorf("--session and --agent are for commands that call a daemon")
			case a.json && !check:
				return usageErrorf("--json is for what commands print, of this one with --check")
			}
			if check {
				return a.check()
			}
			return a.serve(cmd.Context(), link, scratch)
		},
	}
	cmd.Flags().BoolVar(&link, "link", false, "also print a link that signs a browser in for the session local, good for a minute")
	cmd.Flags().BoolVar(&check, "check", false, "only say whether it could: configuration, keys, journal. Nothing is changed, and a daemon may run meanwhile")
	cmd.Flags().StringVar(&scratch, scratchFlag, "", "for a daemon that keeps nothing: its directory, which it takes with it")
	_ = cmd.Flags().MarkHidden(scratchFlag) // there is such a flag
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		for _, name := range []string{"session", "agent", "addr"} {
			_ = cmd.InheritedFlags().MarkHidden(name) // there are such flags
		}
		help(cmd, args)
		fmt.Fprint(cmd.OutOrStdout(), "\nConfiguration, by variables:\n")
		_ = writeConfigTable(cmd.OutOrStdout())
	})
	cmd.Long = `Runs the daemon in the foreground until SIGTERM, or SIGINT or SIGHUP where they were not
ignored at the start: then open streams get a last event, waits are answered, tasks get
SIGTERM, and after the grace SIGKILL, and the exit code is 0. A second signal leaves the
grace out. SIGUSR2, or "afoot reload", has it go on as the binary that is on disk now, with
AFOOT_ENV_FILE read again and all its tasks.

It listens on loopback and makes its secret on the first start. Sessions are kept
apart by the API, not by the operating system: all tasks run as the daemon's user.`
	return cmd
}

// scratchFlag is for who starts a private daemon.
const scratchFlag = "scratch"

// serve runs the daemon until a signal ends it. scratch is for one that keeps nothing.
func (a *app) serve(ctx context.Context, link bool, scratch string) (err error) {
	cfg := a.cfg
	level := new(slog.LevelVar)
	log := newLogger(cfg, a.stderr, level)
	if err := cfg.checkServe(); err != nil {
		return exitError{code: exitUsage, err: err}
	}
	from := a.from
	signals, reloads, bySignal := takeSignals(from)
	at, err := openState(cfg, scratch, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close()) }()

	if from == nil {
		if err := endPredecessor(ctx, at.dir, log); err != nil {
			return err
		}
	}
	h, err := buildHouse(ctx, cfg, at, from, log, level)
	if err != nil {
		return err
	}
	listener, err := from.listen(ctx, cfg.Addr)
	if err != nil {
		return errors.Join(err, h.quiet(ctx, cfg.patience()), h.close())
	}
	profiles, err := openProfiles(ctx, cfg.PprofAddr, log)
	if err != nil && from != nil { // tasks run on here: they are worth more than profiles
		log.Error("profiles are not served", keyError, err)
		err = nil
	}
	if err != nil {
		return errors.Join(err, listener.Close(), h.quiet(ctx, cfg.patience()), h.close())
	}
	defer func() { err = errors.Join(err, profiles.close()) }()
	d := newDaemon(cfg, log, h, listener)
	d.program, d.signals, d.reloads, d.bySignal, d.bound = programPath(from), signals, reloads, bySignal, scratch != ""
	return d.run(ctx, func() error {
		if from != nil {
			return nil
		}
		return a.welcome(d, link)
	})
}

// takeSignals takes the signals that end the daemon and the one that has it reload, and does
// so up to the exit of the process: none that comes late or again breaks off an orderly end,
// nor does a log line into a pipe that nobody reads.
func takeSignals(from *luggage) (signals, reloads chan os.Signal, bySignal bool) {
	signals, reloads = make(chan os.Signal, 4), make(chan os.Signal, 1)
	signal.Notify(signals, endingSignals()...)
	bySignal = !signal.Ignored(syscall.SIGUSR2)
	if from != nil {
		bySignal = from.BySignal // it is ignored between two images
	}
	if bySignal {
		signal.Notify(reloads, syscall.SIGUSR2)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not ignored: tasks would inherit that
	return signals, reloads, bySignal
}

// endingSignals are those that end the daemon: not SIGINT and SIGHUP where it was
// started with them ignored, by a shell's & or by nohup. It has to be asked before
// the producers are made, which put a handler on ignored signals.
func endingSignals() []os.Signal {
	ending := []os.Signal{syscall.SIGTERM}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			ending = append(ending, sig)
		}
	}
	return ending
}

// daemon is the house with its door open.
type daemon struct {
	// config is what holds now; [daemon.cfg] gives it.
	config     atomic.Pointer[Config]
	log        *slog.Logger
	house      *house
	listener   net.Listener
	door       *door
	lull       *lull
	control    *control // nil in memory
	supervisor *supervisor
	// program is where the binary lies, whatever lies there by now.
	program string
	signals chan os.Signal
	// bound says that it ends with the process that started it. The kernel tells that by a
	// signal for each thread of that one, so none of them means to hurry.
	bound bool
	// reloads has SIGUSR2, if bySignal says that it is listened to.
	reloads  chan os.Signal
	bySignal bool
	// orders come from the control socket, and are carried out by run. Nobody takes them
	// once left is closed.
	orders chan request
	left   chan struct{}
}

// request is an order that waits for its verdict.
type request struct {
	order  order
	answer chan<- verdict
}

func newDaemon(cfg *Config, log *slog.Logger, h *house, listener net.Listener) *daemon {
	d := &daemon{log: log, house: h, listener: listener, lull: newLull(), orders: make(chan request), left: make(chan struct{})}
	d.config.Store(cfg)
	return d
}

func (d *daemon) cfg() *Config { return d.config.Load() }

// status is one line for a supervisor.
func (d *daemon) status() string { return "listening on " + d.boundAddr() }

// run serves until a signal comes or the listener breaks, and takes everything
// down. Ready is called once requests are taken.
func (d *daemon) run(ctx context.Context, ready func() error) error {
	d.door = &door{listener: d.listener, tls: d.house.tls, server: d.server}
	d.door.open()
	defer d.lull.close()
	d.supervisor = newSupervisor(d.log, func() { d.house.service.Counts() })
	defer d.supervisor.close()
	listed, err := insist(d.log, "commands of this machine do not find the daemon meanwhile", func() error { return d.info().write(d.house.state.dir) })
	if err == nil && !d.cfg().inMemory() {
		if d.control, err = d.house.from.openControl(d.house.state.dir, d.order); err == nil {
			defer func() { _ = d.control.close() }()
		}
	}
	if err == nil {
		err = ready()
	}
	if err == nil {
		d.supervisor.ready(d.status())
		d.house.from.arrived(d.log)
		d.house.hooks.Resume()
		err = d.attend(ctx)
	}
	close(d.left)
	listed.close()
	d.supervisor.stopping()
	return errors.Join(err, d.shutdown(ctx))
}

// attend does what it is told until that is to end.
func (d *daemon) attend(ctx context.Context) error {
	for {
		select {
		case sig := <-d.signals:
			d.log.Info("shutting down", keySignal, sig.String())
			return nil
		case err := <-d.door.broken:
			d.door.broken <- err
			return err
		case <-d.reloads:
			d.carryOut(ctx, order{Do: controlReload})
		case r := <-d.orders:
			r.answer <- d.carryOut(ctx, r.order)
		}
	}
}

// order has run carry out what the control socket was asked for, but for what takes
// long and changes nothing.
func (d *daemon) order(ctx context.Context, o order) verdict {
	if o.Do == controlBackup {
		return d.backup(ctx, o.File)
	}
	answer := make(chan verdict, 1)
	select {
	case d.orders <- request{order: o, answer: answer}:
		return <-answer
	case <-d.left:
		return verdict{Error: "the daemon is shutting down"}
	case <-ctx.Done():
		return verdict{Error: "the daemon is shutting down"}
	}
}

func (d *daemon) carryOut(ctx context.Context, o order) verdict {
	if o.Do != controlReload {
		return verdict{Error: fmt.Sprintf("this daemon does not know how to %q", o.Do)}
	}
	lines, err := d.reload(ctx)
	if err != nil {
		d.log.Error("not reloaded", keyError, oneLine(err))
		return verdict{Error: oneLine(err)}
	}
	d.log.Info("reloaded", "changes", strings.Join(lines, "; "))
	return verdict{Lines: lines}
}

func (d *daemon) backup(ctx context.Context, file string) verdict {
	if d.house.journal == nil {
		return verdict{Error: "the daemon keeps nothing that could be backed up"}
	}
	if err := d.house.journal.Backup(ctx, file); err != nil {
		return verdict{Error: oneLine(err)}
	}
	return verdict{}
}

// shutdown goes from the outside to the inside: streams get their last event,
// tasks are stopped, which answers the waits, then connections close, then what
// the tasks were written to.
func (d *daemon) shutdown(ctx context.Context) error {
	// The registry waits twice for a teardown at most: for starts that are on their
	// way, then for the tasks. Only what breaks that promise is left behind here.
	ctx, cancel := context.WithTimeout(ctx, 2*d.cfg().teardown()+shutdownSlack)
	defer cancel()
	again := d.signals
	if d.bound {
		again = nil
	}
	done := make(chan struct{})
	hurried := make(chan struct{})
	go func() {
		defer close(hurried)
		select {
		case sig := <-again:
			d.log.Info("shutting down at once", keySignal, sig.String())
			d.house.hurry()
		case <-done:
		}
	}()
	err := errors.Join(d.house.quiet(ctx, d.cfg().patience()), d.hangUp(ctx))
	if serveErr := <-d.door.broken; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	err = errors.Join(err, d.door.close(), d.house.close(), removeListenInfo(d.house.state.dir))
	close(done)
	<-hurried
	if err == nil {
		d.log.Info("shut down")
	}
	return err
}

// hangUp ends the connections. Everything was answered before; what a client does
// not take in time it does not get.
func (d *daemon) hangUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hangUpTimeout)
	defer cancel()
	err := d.door.current.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	d.log.Info("connections were cut whose clients did not finish")
	return d.door.current.Close()
}

func (d *daemon) server() *http.Server {
	return &http.Server{
		Handler:           d.lull.watch(d.house.handler),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       api.ConnContext,
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
		// The server's own answer to "OPTIONS *" would come before the doors.
		DisableGeneralOptionsHandler: true,
	}
}

// info is what commands on this machine need to know.
func (d *daemon) info() ListenInfo {
	return ListenInfo{
		PID: os.Getpid(), Addr: d.boundAddr(), URL: d.url(), SecretFile: d.cfg().secretFile(),
		Issuer: d.cfg().JWTIssuer, Audience: d.cfg().JWTAudience, TLSCert: d.cfg().TLSCert,
	}
}
