package mcp

import (
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/api/tools"
	"afoot/registry"
)

// addTools makes the tools known. Which of them a caller sees is said by listTools.
func (s *Server) addTools() {
	for _, d := range s.cfg.Tools.Definitions(true) {
		s.server.AddTool(toolOf(d), s.answer)
	}
}

func toolOf(d tools.Definition) *sdk.Tool {
	return &sdk.Tool{
		Name:         d.Name,
		Title:        d.Title,
		Description:  d.Description,
		InputSchema:  d.Input,
		OutputSchema: d.Output,
		Annotations: &sdk.ToolAnnotations{
			Title:           d.Title,
			ReadOnlyHint:    d.ReadOnly,
			DestructiveHint: &d.Destructive,
			IdempotentHint:  d.Idempotent,
			OpenWorldHint:   &d.OpenWorld,
		},
	}
}

// listTools gives the tools that the caller may use.
func (s *Server) listTools(x *Exchange) *sdk.ListToolsResult {
	result := &sdk.ListToolsResult{Tools: []*sdk.Tool{}}
	result.CacheScope = "private"
	for _, d := range s.cfg.Tools.Definitions(x.who.Writes) {
		result.Tools = append(result.Tools, toolOf(d))
	}
	return result
}

// answer answers a call by the tool's result.
func (s *Server) answer(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	x := within(ctx)
	if err := x.reads(outputOf(req.Params)); err != nil {
		return nil, err
	}
	answer, err := s.cfg.Tools.Call(ctx, x.call(req.Params))
	if err != nil {
		return nil, x.refuse(err)
	}
	x.carry(ctx, answer)
	return resultOf(answer), nil
}

// outputOf names the task whose output a call reads; "" for none.
func outputOf(params *sdk.CallToolParamsRaw) registry.ID {
	var of struct {
		Task registry.ID `json:"task_id"`
	}
	if params.Name != tools.NameOutput || json.Unmarshal(params.Arguments, &of) != nil {
		return ""
	}
	return of.Task
}

// reads refuses what the request may not read. Two reads of one task can't be in one
// batch: the second waits for the fate of the first, which the answer to both decides.
func (x *Exchange) reads(id registry.ID) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id == "" {
		return nil
	}
	if slices.Contains(x.read, id) {
		return invalidParams("a batch may read a task only once")
	}
	x.read = append(x.read, id)
	return nil
}

func (x *Exchange) call(params *sdk.CallToolParamsRaw) tools.Call {
	return tools.Call{
		Caller:     x.who.Caller,
		Name:       params.Name,
		Arguments:  params.Arguments,
		Writes:     x.who.Writes,
		Explicit:   x.who.Explicit,
		Until:      x.who.Until,
		LogAddress: logURI,
	}
}

func resultOf(a *tools.Answer) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: a.Text}},
		StructuredContent: a.Value,
		IsError:           a.IsError,
	}
}
