package mcp

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/api/tools"
)

// listTools gives the tools that the caller may use.
func (s *Server) listTools(x *Exchange) *sdk.ListToolsResult {
	result := &sdk.ListToolsResult{Tools: []*sdk.Tool{}}
	result.CacheScope = "private"
	for _, d := range s.cfg.Tools.Definitions(x.who.Writes) {
		result.Tools = append(result.Tools, &sdk.Tool{
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
		})
	}
	return result
}

// callTool answers tools/call: by the tool's result, or by a task of the extension.
func (s *Server) callTool(ctx context.Context, x *Exchange, params *sdk.CallToolParamsRaw) (sdk.Result, error) {
	call := x.call(params)
	if declares(params.Meta) {
		if result, err := s.startTask(ctx, x, call); result != nil || err != nil {
			return result, err
		}
	}
	answer, err := s.cfg.Tools.Call(ctx, call)
	if err != nil {
		return nil, x.failed(call.Name, err)
	}
	x.carry(ctx, answer)
	return resultOf(answer), nil
}

func (x *Exchange) call(params *sdk.CallToolParamsRaw) tools.Call {
	return tools.Call{
		Caller:     x.who.Caller,
		Name:       params.Name,
		Arguments:  params.Arguments,
		Writes:     x.who.Writes,
		Until:      x.who.Until,
		LogAddress: logURI,
	}
}

// failed words what is no result: an unknown tool is the protocol's error, all else
// the whole request's.
func (x *Exchange) failed(name string, err error) error {
	if errors.Is(err, tools.ErrUnknown) {
		return invalidParams(fmt.Sprintf("unknown tool %q", name))
	}
	return x.refuse(err)
}

func resultOf(a *tools.Answer) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: a.Text}},
		StructuredContent: a.Value,
		IsError:           a.IsError,
	}
}
