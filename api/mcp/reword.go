package mcp

import (
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
	call, err := readMessage(request)
	if err != nil || call.method == "" || call.id == nil {
		return a
	}
	code, status := int64(jsonrpc.CodeInvalidRequest), a.Status
	switch {
	case strings.HasPrefix(words, unhandled):
		code, words, status = jsonrpc.CodeMethodNotFound, "method not found: "+call.method, http.StatusOK
	case !strings.HasPrefix(words, unfit):
		return a
	}
	header := a.Header.Clone()
	header.Set("Content-Type", "application/json")
	return &Answer{Status: status, Header: header, Body: refusal(call.id, code, words)}
}
