package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/api/tools"
	"afoot/registry"
)

const (
	// tasksExtension is the name of the extension for results that are asked for later.
	tasksExtension = "io.modelcontextprotocol/tasks"
	// pollIntervalMs is how often clients should ask.
	pollIntervalMs = 1000
	// killReason is what a task hears that a client cancels.
	killReason = "tasks/cancel"
)

// The statuses of an MCP task.
const (
	working   = "working"
	completed = "completed"
	cancelled = "cancelled"
)

// The kinds of results.
const (
	resultTask     = "task"
	resultComplete = "complete"
)

// task is an MCP task as its client sees it.
type task struct {
	sdk.ResultBase

	ResultType     string              `json:"resultType"`
	TaskID         string              `json:"taskId"`
	Status         string              `json:"status"`
	StatusMessage  string              `json:"statusMessage,omitempty"`
	CreatedAt      string              `json:"createdAt"`
	LastUpdatedAt  string              `json:"lastUpdatedAt"`
	TTLMs          *int64              `json:"ttlMs"`
	PollIntervalMs int64               `json:"pollIntervalMs"`
	Result         *sdk.CallToolResult `json:"result,omitempty"`
}

// done is an answer that says nothing but that the request arrived.
type done struct {
	sdk.ResultBase

	ResultType string `json:"resultType"`
}

type taskParams struct {
	sdk.ParamsBase

	TaskID string `json:"taskId"`
}

// declares reports whether a request says that its client knows the extension. What
// other requests of the client said does not count.
func declares(meta sdk.Meta) bool {
	capabilities, _ := meta[sdk.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	settings, declared := extensions[tasksExtension]
	_, object := settings.(map[string]any)
	return declared && object
}

// undeclared is the refusal of a request that needed the extension.
func undeclared() error {
	return &jsonrpc.Error{
		Code:    sdk.CodeMissingRequiredClientCapabilities,
		Message: "Missing required client capability: the extension " + tasksExtension,
		Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
	}
}

// listens refuses a stream for tasks from a client that can't know any. The SDK does
// not read that part; which ones a stream will tell of is the server's choice: none.
func (x *Exchange) listens(params *sdk.SubscriptionsListenParams) error {
	var request struct {
		Params struct {
			Notifications struct {
				TaskIDs []string `json:"taskIds"`
			} `json:"notifications"`
		} `json:"params"`
	}
	if json.Unmarshal(x.body, &request) == nil && len(request.Params.Notifications.TaskIDs) > 0 && !declares(params.Meta) {
		return undeclared()
	}
	return nil
}

// addTaskMethods makes the methods of the extension known, and those of the draft
// before it, which are gone.
func (s *Server) addTaskMethods() error {
	gone := func(method string) error {
		return sdk.AddReceivingCustomMethod(s.server, method, func(context.Context, *sdk.ServerSession, *taskParams) (*done, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + method}
		})
	}
	for _, method := range []string{"tasks/result", "tasks/list"} {
		if err := gone(method); err != nil {
			return err
		}
	}
	if err := sdk.AddReceivingCustomMethod(s.server, "tasks/get", s.getTask); err != nil {
		return err
	}
	if err := sdk.AddReceivingCustomMethod(s.server, "tasks/update", s.updateTask); err != nil {
		return err
	}
	return sdk.AddReceivingCustomMethod(s.server, "tasks/cancel", s.cancelTask)
}

// startTask answers a call by a task that is in the registry already. Nil is for a
// call that has to be answered at once.
func (s *Server) startTask(ctx context.Context, x *Exchange, call tools.Call) (sdk.Result, error) {
	answer, err := s.cfg.Tools.Detach(ctx, call)
	switch {
	case err != nil:
		return nil, x.refuse(err)
	case answer == nil:
		return nil, nil //nolint:nilnil // as said above
	case answer.IsError:
		return nil, nil //nolint:nilnil // so that it is told as every call is
	}
	snapshot, err := s.cfg.Service.Get(ctx, x.caller(), answer.ID)
	if err != nil {
		return nil, x.refuse(err)
	}
	t := s.describe(x, snapshot)
	t.ResultType, t.Status, t.StatusMessage = resultTask, working, answer.Text
	return t, nil
}

// named finds the task of a request that may be made.
func (s *Server) named(ctx context.Context, params *taskParams) (x *Exchange, snapshot registry.Snapshot, err error) {
	if x = within(ctx); x == nil || params == nil {
		return nil, snapshot, invalidParams("params are missing")
	}
	if !declares(params.Meta) {
		return nil, snapshot, undeclared()
	}
	if x.name != "" && x.name != params.TaskID {
		x.fail(http.StatusBadRequest)
		return nil, snapshot, &jsonrpc.Error{
			Code:    sdk.CodeHeaderMismatch,
			Message: "header mismatch: Mcp-Name does not name the task of the request",
		}
	}
	id, ok := s.taskOf(x.caller().Session, params.TaskID)
	if !ok {
		return nil, snapshot, invalidParams("Task not found")
	}
	snapshot, err = s.cfg.Service.Get(ctx, x.caller(), id)
	switch registry.CodeOf(err) {
	case "":
		return x, snapshot, nil
	case registry.CodeGone:
		return nil, snapshot, invalidParams("Task has expired")
	case registry.CodeUnknownTask, registry.CodeForeignTask:
		return nil, snapshot, invalidParams("Task not found")
	default:
		return nil, snapshot, x.refuse(err)
	}
}

// getTask answers tasks/get. An end that is told so is reported.
func (s *Server) getTask(ctx context.Context, _ *sdk.ServerSession, params *taskParams) (*task, error) {
	x, snapshot, err := s.named(ctx, params)
	if err != nil {
		return nil, err
	}
	t := s.describe(x, snapshot)
	if t.Status != completed {
		return t, nil // an end that was asked for is reported, and its output stays unread
	}
	if err := x.reads(snapshot.ID); err != nil {
		return nil, err
	}
	answer, err := s.cfg.Tools.Result(ctx, x.call(&sdk.CallToolParamsRaw{Name: tools.NameBash}), snapshot.ID)
	if registry.CodeOf(err) == registry.CodeGone {
		return nil, invalidParams("Task has expired")
	}
	if err != nil {
		return nil, x.refuse(err)
	}
	x.carry(ctx, answer)
	t.Result = resultOf(answer)
	t.Result.IsError = answer.IsError || !wentWell(snapshot)
	return t, nil
}

// updateTask answers tasks/update. No task asks for anything, so there is nothing to
// take.
func (s *Server) updateTask(ctx context.Context, _ *sdk.ServerSession, params *taskParams) (*done, error) {
	if _, _, err := s.named(ctx, params); err != nil {
		return nil, err
	}
	return &done{ResultType: resultComplete}, nil
}

// cancelTask answers tasks/cancel.
func (s *Server) cancelTask(ctx context.Context, _ *sdk.ServerSession, params *taskParams) (*done, error) {
	x, snapshot, err := s.named(ctx, params)
	if err != nil {
		return nil, err
	}
	if !x.who.Writes {
		return nil, x.refuse(registry.Errorf(registry.CodeForbidden, "The scope tasks:read looks only; tasks/cancel needs tasks:write."))
	}
	if _, _, err = s.cfg.Service.Kill(ctx, x.caller(), snapshot.ID, killReason); err != nil {
		return nil, x.refuse(err)
	}
	return &done{ResultType: resultComplete}, nil
}

// describe shows a task of the registry as an MCP task, without its result.
func (s *Server) describe(x *Exchange, snapshot registry.Snapshot) *task {
	updated, until := snapshot.StartedAt, time.Now()
	t := &task{
		ResultType: resultComplete, TaskID: s.taskID(x.caller().Session, snapshot.ID),
		Status: working, StatusMessage: snapshot.Detail, PollIntervalMs: pollIntervalMs,
	}
	if snapshot.Status.Terminal() {
		updated, until = snapshot.FinishedAt, snapshot.FinishedAt
		t.Status = completed
		if s.wasCancelled(snapshot) {
			t.Status = cancelled
		}
	}
	t.CreatedAt, t.LastUpdatedAt = stamp(snapshot.StartedAt), stamp(updated)
	if s.cfg.Retention > 0 {
		// What has not ended is kept for at least so long from now.
		ttl := (until.Sub(snapshot.StartedAt) + s.cfg.Retention).Milliseconds()
		t.TTLMs = &ttl
	}
	return t
}

// wasCancelled reports whether somebody asked for the end. Of a task that an earlier
// daemon started that is told by what it left: a stop reports an end at once, and ends
// it by two signals. Wrong is this only for one that got such a signal from somebody
// else, and whose end was collected before.
func (s *Server) wasCancelled(snapshot registry.Snapshot) bool {
	stopped, known := s.ends.wasStopped(snapshot.ID)
	switch {
	case snapshot.Status != registry.StatusKilled:
		return false
	case known || !snapshot.StartedAt.Before(s.begun):
		return stopped
	}
	var how struct {
		TimedOut bool   `json:"timedOut"`
		Signal   string `json:"signal"`
	}
	_ = json.Unmarshal(snapshot.Result, &how) // who says nothing of it was not timed out
	ours := how.Signal == "" || how.Signal == "SIGTERM" || how.Signal == "SIGKILL"
	return snapshot.Reported && ours && !how.TimedOut
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// wentWell reports whether the command exited with 0.
func wentWell(snapshot registry.Snapshot) bool {
	var how struct {
		ExitCode *int `json:"exitCode"`
	}
	return snapshot.Status == registry.StatusCompleted && json.Unmarshal(snapshot.Result, &how) == nil && (how.ExitCode == nil || *how.ExitCode == 0)
}
