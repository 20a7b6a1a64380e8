package mcp

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// receive stands before the SDK's own handlers: it knows who calls, and answers what
// depends on that.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		x := carried(req)
		if x == nil {
			return nil, errors.New("a message without a request")
		}
		ctx, done := x.whole(ctx)
		defer done()
		switch params := req.GetParams().(type) {
		case *sdk.ListToolsParams:
			return s.listTools(x), nil
		case *sdk.CallToolParamsRaw:
			if declares(params.Meta) {
				if result, err := s.startTask(ctx, x, x.call(params)); result != nil || err != nil {
					return result, err
				}
			}
		case *sdk.ListResourcesParams:
			return s.listResources(ctx, x, params)
		case *sdk.SubscriptionsListenParams:
			if err := x.listens(params); err != nil {
				return nil, err
			}
		}
		switch method {
		case "initialize":
			return s.initialize(ctx, method, req, x, next)
		case "resources/subscribe":
			result, err := next(ctx, method, req)
			if params, ok := req.GetParams().(*sdk.SubscribeParams); ok && err == nil {
				s.background(func() { s.tellEnded(x.caller(), params.URI) })
			}
			return result, err
		}
		return next(ctx, method, req)
	}
}

// initialize makes an MCP session its opener's.
func (s *Server) initialize(ctx context.Context, method string, req sdk.Request, x *Exchange, next sdk.MethodHandler) (sdk.Result, error) {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || session.InitializeParams() != nil {
		return next(ctx, method, req) // the SDK's to refuse
	}
	b, err := s.sessions.open(x.who, session)
	if err != nil {
		return nil, x.refuse(err)
	}
	result, err := next(ctx, method, req)
	if err != nil {
		s.sessions.remove(session.ID())
		return nil, err
	}
	if !x.opened(func() { s.sessions.leave(session.ID(), b) }) {
		s.sessions.remove(session.ID()) // nobody learns its name
	}
	return result, nil
}

// opened hands the exchange an MCP session that it opened. It reports false if the
// exchange is over.
func (x *Exchange) opened(leave func()) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	x.leave = leave
	return true
}

// invalidParams is the protocol's error for what a client can set right.
func invalidParams(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}
