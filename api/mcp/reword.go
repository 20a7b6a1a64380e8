package mcp

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// How the SDK begins what it says of a method that it does not know, and of a call that
// is not as its method wants it.
const (
	unhandled = "JSON RPC not handled"
	unfit     = "invalid request"
)

// reworded gives the answer as an error of the protocol where the SDK refused a call in
// plain text: its caller waits for an answer with its id. A method that is not there is
// no fault of the request by HTTP.
func reworded(request []byte, a *Answer) *Answer {
	words, refused := a.Refusal()
	if !refused || a.Status != http.StatusBadRequest {
		return a
	}
	var call struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
	}
	if json.Unmarshal(request, &call) != nil || call.Method == "" {
		return a
	}
	id, err := jsonrpc.MakeID(call.ID)
	if err != nil || !id.IsValid() {
		return a
	}
	problem := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: words}
	status := a.Status
	switch {
	case strings.HasPrefix(problem.Message, unhandled):
		problem.Code, problem.Message, status = jsonrpc.CodeMethodNotFound, "method not found: "+call.Method, http.StatusOK
	case !strings.HasPrefix(problem.Message, unfit):
		return a
	}
	text, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: problem})
	if err != nil {
		return a
	}
	header := a.Header.Clone()
	header.Set("Content-Type", "application/json")
	return &Answer{Status: status, Header: header, Body: text}
}
