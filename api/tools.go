package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"afoot/api/tools"
	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
)

// newTools makes the tools, which obey the API's own bounds of waits.
func (a *API) newTools(cfg tools.Config) (*tools.Set, error) {
	cfg.Service = a.service
	cfg.WaitDefault, cfg.WaitMax = a.waitDefault, a.waitMax
	cfg.Leaving = a.left
	cfg.Waiting = func(delta int) { a.metrics.waits.Add(int64(delta)) }
	cfg.Started = func(d time.Duration) { a.metrics.started.Observe(d.Seconds()) }
	return tools.New(cfg)
}

// listTools answers GET /tools.
func (a *API) listTools(c *call, r *http.Request) error {
	q := queryOf(r, "format")
	format := q.choice("format", "openai", "anthropic", "mcp")
	if q.err != nil {
		return q.err
	}
	list := wire.ToolList{Tools: []map[string]any{}}
	for _, d := range a.tools.Definitions(!c.looksOnly()) {
		list.Tools = append(list.Tools, wireDefinition(d, format))
	}
	return reply(c, r, http.StatusOK, list)
}

// toolGuidance answers GET /tools/guidance.
func (a *API) toolGuidance(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	c.Header().Set("Content-Type", "text/plain; charset=utf-8")
	return c.handOver(r, http.StatusOK, []byte(a.tools.Guidance()+"\n"))
}

// callTool answers POST /tools/{name}. What was read is committed behind the flush, as
// in GET /tasks/{id}/output.
func (a *API) callTool(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	explicit, err := wantsExplicitAck(r)
	if err != nil {
		return err
	}
	body, err := readBody(c, r)
	if err != nil {
		return err
	}
	if err := checkObject(body); err != nil {
		return err
	}
	ctx, cancel := whileThere(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	ctx, release := c.rightful(ctx)
	defer release()
	answer, err := a.tools.Call(ctx, tools.Call{
		Caller: c.caller, Name: c.target, Arguments: body, Writes: !c.looksOnly(),
		Explicit: explicit, Until: c.principal.ExpiresAt, LogAddress: logAddress(r),
	})
	if err == nil {
		defer answer.Abandon()
	}
	switch {
	case errors.Is(err, tools.ErrUnknown):
		return registry.Errorf(CodeNotFound, "There is no tool %.80q; GET /tools lists those that there are.", c.target)
	case errors.Is(err, tools.ErrExpired) || c.principal.Ended():
		return toolExpired(c.target, answer)
	case registry.CodeOf(err) == registry.CodeForbidden && c.looksOnly():
		return c.principal.Require(auth.TasksWrite) // which also says so in a header
	case err != nil:
		return err
	}
	c.target = string(answer.ID)
	h := c.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	if answer.Delivery != nil {
		tellRead(h, answer.Delivery.Read)
	}
	tellClamped(h, answer.Clamped)
	if err := c.handOver(r, http.StatusOK, encode(wireAnswer(answer))); err != nil {
		return err
	}
	if c.arrived {
		c.confirm(answer.ID, answer.Confirm)
	}
	return nil
}

// toolExpired answers a call whose token ended. The answer that it would have had, which
// may be nil, tells what becomes of a command.
func toolExpired(name string, answer *tools.Answer) error {
	fate := "the command that it ran is stopped."
	switch {
	case name != tools.NameBash || answer != nil && answer.ID == "":
		return errExpired()
	case answer == nil || answer.IsError:
	case answer.Delivery == nil || !answer.Delivery.Snapshot.Status.Terminal():
		fate = "the command that it ran goes on."
	}
	return &auth.Error{Kind: auth.KindUnauthenticated, Message: "The token expired while this call was waiting; " + fate}
}

// checkObject refuses a body that is not one JSON object: what the arguments in it are
// worth is the tool's to say.
func checkObject(body []byte) error {
	in := jsontext.NewDecoder(bytes.NewBuffer(body))
	value, err := in.ReadValue()
	if err != nil {
		return badJSON(err)
	}
	object := value.Kind() == '{'
	if _, err := in.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder's own end
		return invalid("There is something behind the JSON of the body.")
	}
	if !object {
		return invalid("The body must be a JSON object.")
	}
	return nil
}

// logAddress says where a task's log is for this caller: at the address that it called,
// or by path alone where there is none that others could use.
func logAddress(r *http.Request) func(registry.ID) string {
	base := ""
	if r.Host != "" && !overSocket(r.Context()) {
		base = "http://" + r.Host
		if r.TLS != nil {
			base = "https://" + r.Host
		}
	}
	return func(id registry.ID) string { return base + "/tasks/" + string(id) + "/log" }
}

// overSocket reports whether a request came over a unix socket.
func overSocket(ctx context.Context) bool {
	addr, _ := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	return addr != nil && addr.Network() == "unix"
}

// wireAnswer gives the answer of a tool as JSON has it.
func wireAnswer(answer *tools.Answer) any {
	return struct {
		Content []wire.ToolContent `json:"content"`
		IsError bool               `json:"isError"`
		Value   any                `json:"value,omitempty"`
	}{[]wire.ToolContent{{Type: wire.Text, Text: answer.Text}}, answer.IsError, answer.Value}
}

// wireDefinition gives a definition in the form of one API; mcp is the default.
func wireDefinition(d tools.Definition, format string) map[string]any {
	switch format {
	case "openai":
		return map[string]any{"type": "function", "function": map[string]any{
			"name": d.Name, "description": d.Description, "parameters": d.Input,
		}}
	case "anthropic":
		return map[string]any{"name": d.Name, "description": d.Description, "input_schema": d.Input}
	default:
		return map[string]any{
			"name": d.Name, "title": d.Title, "description": d.Description,
			"inputSchema": d.Input, "outputSchema": d.Output,
			"annotations": map[string]any{
				"title": d.Title, "readOnlyHint": d.ReadOnly, "destructiveHint": d.Destructive,
				"idempotentHint": d.Idempotent, "openWorldHint": d.OpenWorld,
			},
		}
	}
}
