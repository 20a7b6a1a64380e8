package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"

	"afoot/auth"
)

// profiles serves the profiles of the runtime, at an address of their own. Who can
// reach it needs no token, tasks neither: it is for finding a fault, not for good.
type profiles struct {
	server *http.Server
	ended  chan struct{}
}

// openProfiles begins to serve, if there is an address; else it gives nil.
func openProfiles(ctx context.Context, addr Address, log *slog.Logger) (*profiles, error) {
	if addr == (Address{}) {
		runtime.MemProfileRate = 0 // nobody can ask for what it samples
		return nil, nil            //nolint:nilnil // nil profiles are none
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, addr.Network, addr.Address)
	if err != nil {
		return nil, fmt.Errorf("%s_PPROF_ADDR=%s: %w", envPrefix, addr, err)
	}
	m := http.NewServeMux()
	m.HandleFunc("GET /debug/pprof/", pprof.Index)
	m.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	m.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	m.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	// A page in a browser on this machine must not come in under a name of its own.
	doors := auth.Doors{}.Wrap(func(w http.ResponseWriter, _ *http.Request, err *auth.Error) {
		http.Error(w, err.Message, http.StatusMisdirectedRequest)
	})
	p := &profiles{
		server: &http.Server{
			Handler:           doors(m),
			ReadHeaderTimeout: readHeaderTimeout,
			// The server's own answer to "OPTIONS *" would come before the doors.
			DisableGeneralOptionsHandler: true,
			ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		ended: make(chan struct{}),
	}
	go func() {
		defer close(p.ended)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("profiles are served no more", keyError, err)
		}
	}()
	log.Warn("profiles are served without a token", "addr", listener.Addr().String())
	return p, nil
}

// close cuts those who read.
func (p *profiles) close() error {
	if p == nil {
		return nil
	}
	err := p.server.Close()
	<-p.ended
	return err
}
