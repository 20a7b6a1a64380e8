package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

// mcpEnd bounds the end of the agent, which waits for its tasks.
const mcpEnd = time.Minute

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Speak the Model Context Protocol on standard input and output",
		Long: `Speaks the Model Context Protocol on standard input and output, for clients that
start a command: what it says is the daemon's /mcp. If no daemon runs it has one of its
own, which keeps nothing and ends with it.

It acts as an agent of its own, unless --agent or the token names one. When standard
input ends, the tasks of its own agent are stopped. Messages for people go to standard
error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			defer stop()
			// A private daemon ends with the thread that started it.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			return a.mcp(ctx, cmd)
		},
	}
}

// mcp bridges until the client has gone.
func (a *app) mcp(ctx context.Context, cmd *cobra.Command) (err error) {
	r, private, err := a.mcpDaemon(ctx)
	if err != nil {
		return err
	}
	if private != nil {
		defer func() { err = errors.Join(err, private.stop()) }()
	}
	bridged, over := context.WithCancelCause(ctx)
	defer over(nil)
	door := &mcpDoor{current: r, over: over, agent: a.agent}
	defer func() { _ = door.close() }()
	if private == nil {
		door.dial = a.connect
	}
	own := a.agent == "" && pinnedAgent(a.cfg.Token) == ""
	if own {
		lease := mcpLease.Milliseconds()
		agent, err := decode[client.Agent](r.OpenAgent(ctx, &client.OpenAgentParams{}, client.AgentRequest{Label: optional("afoot mcp"), LeaseMs: &lease}))
		if err != nil {
			return err
		}
		door.agent = agent.Id
	}
	b := &bridge{
		door: door, out: a.stdout, calls: map[string]context.CancelFunc{},
		mcpSession: mcpSession{subscriptions: map[string]*mcpMessage{}},
		log:        func(format string, args ...any) { fmt.Fprintf(a.stderr, "afoot: "+format+"\n", args...) },
	}
	alive, fade := context.WithCancel(bridged)
	signs := make(chan struct{})
	go func() {
		defer close(signs)
		door.live(alive)
	}()
	err = b.run(bridged, cmd.InOrStdin())
	fade()
	<-signs
	if ctx.Err() != nil {
		err = nil // it was asked to end
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpEnd)
	defer cancel()
	if exit, lost := errors.AsType[exitError](err); lost && exit.code == exitNoDaemon {
		return err
	}
	b.farewell(end)
	if !own {
		return err
	}
	ended := discard(door.remote().DisposeAgent(end, door.agent, &client.DisposeAgentParams{}))
	if refusal, ok := errors.AsType[*client.RefusalError](ended); ok && (refusal.Code == client.ErrorCodeGone || refusal.Code == client.ErrorCodeUnknownAgent) {
		ended = nil
	}
	return errors.Join(err, ended)
}

// mcpDaemon finds the daemon, or starts one if none answers and none was named.
func (a *app) mcpDaemon(ctx context.Context) (*remote, *privateDaemon, error) {
	r, err := a.connect()
	if err == nil {
		if err = discard(r.Healthz(ctx)); err == nil {
			return r, nil, nil
		}
		err = errors.Join(err, r.close())
	}
	exit, none := errors.AsType[exitError](err)
	if !none || exit.code != exitNoDaemon || a.addr != "" || a.cfg.Token != "" {
		return nil, nil, err
	}
	private, err := a.startPrivate(ctx)
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(a.stderr, "afoot: no daemon runs with the state directory %s: started one that keeps nothing and ends with this command\n", a.cfg.StateDir)
	if r, err = a.connectPrivate(private); err != nil {
		return nil, nil, errors.Join(err, private.stop())
	}
	return r, private, nil
}

// pinnedAgent is the agent that a token acts for and no other; "" for any.
func pinnedAgent(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Agent string `json:"agent"`
	}
	_ = json.Unmarshal(text, &claims) // the daemon says what is wrong with it
	return claims.Agent
}

// plainError is what a client is told.
func plainError(err error) string {
	if refusal, ok := errors.AsType[*client.RefusalError](err); ok {
		return refusal.Detail
	}
	return oneLine(err)
}
