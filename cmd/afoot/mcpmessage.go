package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The headers of the Model Context Protocol.
const (
	mcpSessionHeader = "Mcp-Session-Id"
	mcpVersionHeader = "Mcp-Protocol-Version"
	mcpMethodHeader  = "Mcp-Method"
	mcpNameHeader    = "Mcp-Name"
)

// mcpMessage is a message of the protocol, and what of it decides its way.
type mcpMessage struct {
	text []byte

	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		TaskID    string          `json:"taskId"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// errMCPLine means that a line was read over.
var errMCPLine = errors.New("this line is too long for a message")

// mcpLine gives the next line, the last one together with the error that ended it. One of
// more than limit bytes is read over: errMCPLine.
func mcpLine(from *bufio.Reader, limit int) (line []byte, err error) {
	for long := false; ; {
		part, err := from.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && err == nil:
			return nil, errMCPLine
		default:
			return line, err
		}
	}
}

// readMCP reads one message as the daemon does, by exact names. A batch is passed on as
// it is.
func readMCP(line []byte) (m *mcpMessage, err error) {
	m = &mcpMessage{text: line}
	if batch := bytes.HasPrefix(line, []byte("[")); batch {
		var all []json.RawMessage
		return m, json.Unmarshal(line, &all)
	}
	err = jsonv2.Unmarshal(line, m, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for _, id := range []*json.RawMessage{&m.ID, &m.Params.RequestID} {
		value := jsontext.Value(*id)
		if value.Canonicalize() == nil { // the same id is the same text, however it was written
			*id = json.RawMessage(value)
		}
	}
	return m, err
}

// call reports whether an answer is due.
func (m *mcpMessage) call() bool { return m.Method != "" && len(m.ID) > 0 }

// stateless sets the headers of a protocol version without sessions, and reports
// whether the message is of one.
func (m *mcpMessage) stateless(h http.Header) bool {
	if m.Params.Meta.Version == "" {
		return false
	}
	h.Set(mcpVersionHeader, m.Params.Meta.Version)
	h.Set(mcpMethodHeader, m.Method)
	for _, name := range []string{m.Params.TaskID, m.Params.URI, m.Params.Name} {
		if name != "" {
			h.Set(mcpNameHeader, name)
		}
	}
	return true
}

// again is the message under another id.
func (m *mcpMessage) again(id string) *mcpMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(m.text, &members) // it was read before
	members["id"] = json.RawMessage(strconv.Quote(id))
	text := plainJSON(members)
	return &mcpMessage{text: text, ID: members["id"], Method: m.Method, Params: m.Params}
}

// mcpRefusal is an answer by the bridge itself.
func mcpRefusal(id json.RawMessage, code int, message string) []byte {
	type wireError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return plainJSON(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   wireError       `json:"error"`
	}{"2.0", id, wireError{code, message}})
}

// plainJSON is for what can't fail: every raw part of it was read before.
func plainJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
