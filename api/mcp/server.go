package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/api/tools"
	"afoot/registry"
)

// Stateless is the first protocol version without sessions.
const Stateless = "2026-07-28"

// The headers of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerName    = "Mcp-Name"
)

// closeBound is how long the calls of MCP sessions may take to end with the server.
const closeBound = 5 * time.Second

// ErrUnknownSession means that the request names an MCP session that there is not, or
// that is somebody else's: its client begins a new one.
var ErrUnknownSession = errors.New("no such MCP session")

// Config is what a [Server] is made of. Service and Tools are required.
type Config struct {
	Service registry.Service
	Tools   *tools.Set
	// Version of the daemon, as clients are told it.
	Version string
	// Key (at least 16 bytes) makes the ids of MCP tasks unguessable; they are good for
	// as long as it stays. Nil makes one that ends with the server.
	Key []byte
	// Retention is how long ended tasks are kept; 0 for ever.
	Retention time.Duration
	// MaxSessions (16) bounds the MCP sessions of one session; a further one ends the one
	// that was silent longest. Idle (30 min) is the silence that ends one.
	// MaxSubscriptions (1000) bounds what one MCP session listens to.
	MaxSessions, MaxSubscriptions int
	Idle                          time.Duration
	Logger                        *slog.Logger
}

// Server speaks the protocol. It is safe for concurrent use.
type Server struct {
	cfg       Config
	server    *sdk.Server
	stateful  http.Handler
	stateless http.Handler
	sessions  *sessions
	ends      ends
	begun     time.Time
	detach    func()

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// New makes a server and lets it listen to the service. The caller closes it, after
// the last exchange has ended.
func New(cfg Config) (*Server, error) {
	if cfg.Service == nil || cfg.Tools == nil {
		return nil, errors.New("mcp: Service and Tools are required")
	}
	if cfg.Key == nil {
		cfg.Key = make([]byte, 32)
		_, _ = rand.Read(cfg.Key) // never fails
	}
	if len(cfg.Key) < 16 {
		return nil, errors.New("mcp: the key is too short")
	}
	cfg.Version = cmp.Or(cfg.Version, "dev")
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, 16)
	cfg.MaxSubscriptions = cmp.Or(cfg.MaxSubscriptions, 1000)
	cfg.Idle = cmp.Or(cfg.Idle, 30*time.Minute)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, begun: time.Now(), ends: ends{wanted: map[registry.ID]struct{}{}, stopped: map[registry.ID]bool{}}}
	s.sessions = newSessions(cfg, s.endSession)
	logger := slog.New(quiet{cfg.Logger.Handler()})
	s.server = sdk.NewServer(&sdk.Implementation{Name: "afoot", Title: "Afoot", Version: cfg.Version}, &sdk.ServerOptions{
		Instructions: cfg.Tools.Guidance(),
		Logger:       logger,
		Capabilities: &sdk.ServerCapabilities{
			Tools:      &sdk.ToolCapabilities{},
			Resources:  &sdk.ResourceCapabilities{Subscribe: true},
			Extensions: map[string]any{tasksExtension: map[string]any{}},
		},
		SubscribeHandler:   s.subscribe,
		UnsubscribeHandler: s.unsubscribe,
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
			c.CacheScope = "private"
		},
	})
	s.addTools()
	s.addResources()
	if err := s.addTaskMethods(); err != nil {
		return nil, err
	}
	s.server.AddReceivingMiddleware(s.receive)
	s.server.AddSendingMiddleware(s.acknowledged)
	handler := func(stateless bool) http.Handler {
		return carrying(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.server }, &sdk.StreamableHTTPOptions{
			Stateless:    stateless,
			JSONResponse: true,
			Logger:       logger,
			// Host and Origin were looked at before, by rules of our own.
			DisableLocalhostProtection:   true,
			MaxRequestBodyBytes:          -1, // it was read before
			PropagateRequestCancellation: true,
		}))
	}
	s.stateful, s.stateless = handler(false), handler(true)
	s.detach = cfg.Service.OnChange(registry.AllOwners(), s.changed)
	return s, nil
}

// Open begins an exchange. The body was read before; r's own is not touched. The error
// is [ErrUnknownSession], or a [registry.Error] of a body that is no message.
func (s *Server) Open(r *http.Request, who Who, body []byte) (*Exchange, error) {
	var refused []byte
	if r.Method == http.MethodPost {
		var err error
		if refused, err = Refusal(body); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "The body is no message of JSON-RPC: %v.", err)
		}
	}
	x := &Exchange{
		server: s, who: who, body: body, leave: func() {}, header: http.Header{},
		returned: make(chan struct{}), settled: make(chan struct{}), ready: make(chan struct{}, 1),
		request: r.Context(), name: r.Header.Get(headerName),
	}
	id, handler := r.Header.Get(headerSession), s.stateful
	x.opens = id == ""
	if r.Header.Get(headerVersion) >= Stateless {
		id, handler, x.opens = "", s.stateless, false
	}
	if id != "" {
		if x.bound, x.leave = s.sessions.enter(id, who); x.bound == nil {
			return nil, ErrUnknownSession
		}
	}
	x.ctx, x.cancel = context.WithCancel(context.WithValue(r.Context(), exchangeKey{}, x))
	if x.bound != nil {
		stop, leave := context.AfterFunc(x.bound.ctx, x.cancel), x.leave
		x.leave = func() { stop(); leave() }
	}
	request := r.WithContext(x.ctx)
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	go func() {
		defer x.returns()
		if r.Method == http.MethodDelete && id != "" {
			s.sessions.remove(id) // ends its calls, which the SDK would wait for
			x.header, x.status = http.Header{}, http.StatusNoContent
			return
		}
		if refused != nil {
			x.header.Set("Content-Type", "application/json")
			x.fail(http.StatusBadRequest)
			_, _ = writer{x}.Write(refused) // never fails
			return
		}
		handler.ServeHTTP(writer{x}, request)
	}()
	if r.Method == http.MethodGet && x.bound != nil {
		s.background(func() { s.again(x) })
	}
	return x, nil
}

// Sessions counts the MCP sessions.
func (s *Server) Sessions() int { return s.sessions.count() }

// Close ends the MCP sessions and waits until nothing of them runs, for 5 s at most. It is
// idempotent.
func (s *Server) Close() {
	s.detach()
	s.sessions.removeAll(func(owner) bool { return true })
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.work.Wait()
	}()
	select {
	case <-done:
	case <-time.After(closeBound):
		s.cfg.Logger.Warn("calls of MCP sessions did not end")
	}
}

// background does something that may wait for a client. After Close it does not begin.
func (s *Server) background(job func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(job)
	}
}

// endSession closes a session of the SDK, which waits for its calls.
func (s *Server) endSession(session *sdk.ServerSession) {
	s.background(func() {
		if err := session.Close(); err != nil {
			s.cfg.Logger.Debug("an MCP session was closed", slog.Any("error", err))
		}
	})
}
