package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mostID bounds the integers that every reader of JSON takes for what they are: the SDK
// reads numbers as many languages do, into 64 bits of floating point.
const mostID = 1<<53 - 1

// What is wrong with a message.
var (
	errID        = errors.New("an id must be a string, or an integer from -(2^53-1) to 2^53-1 that is written in digits alone")
	errTwice     = errors.New("a member is there twice")
	errBatch     = errors.New("a batch may use an id only once")
	errNoMessage = errors.New("a message must be a JSON object")
)

const methodCancelled = "notifications/cancelled"

// message is what of a message decides about its answer.
type message struct {
	// id is as it was written; nil for none.
	id     jsontext.Value
	method string
	params jsontext.Value
}

// Refusal gives the answer to a message, or a batch of them, that must not be taken at
// all: its answer could not have the id that was asked for, or it names another call by
// one that nobody can have. It is nil for all others. The error says why the text is
// no message.
func Refusal(text []byte) (answer []byte, err error) {
	in := reader(text)
	value, err := in.ReadValue()
	if err != nil {
		return nil, err
	}
	if _, err := in.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder's own end
		return nil, errors.New("there is something behind it")
	}
	var id jsontext.Value
	if value.Kind() == '[' {
		err = checkBatch(value)
	} else {
		id, err = checkMessage(value)
	}
	if err == nil || errors.Is(err, errNoMessage) {
		return nil, err
	}
	return refusal(id, jsonrpc.CodeInvalidRequest, err.Error()), nil
}

// reader leaves what is not about ids to whoever reads the text behind it.
func reader(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// checkMessage gives the id with the error if a refusal can have it.
func checkMessage(text jsontext.Value) (id jsontext.Value, err error) {
	m, err := readMessage(text)
	if err != nil {
		return nil, err
	}
	if m.id != nil && !echoes(m.id) {
		if m.id.Kind() == '0' {
			id = m.id
		}
		return id, errID
	}
	if m.method != methodCancelled || m.params.Kind() != '{' {
		return nil, nil
	}
	var other jsontext.Value
	err = members(m.params, func(name string, value jsontext.Value) {
		if name == "requestId" {
			other = value
		}
	})
	if err == nil && other != nil && !echoes(other) {
		err = errID
	}
	return nil, err
}

func checkBatch(text jsontext.Value) error {
	var batch []json.RawMessage
	if err := json.Unmarshal(text, &batch); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, one := range batch {
		if _, err := checkMessage(jsontext.Value(one)); err != nil {
			return err
		}
		m, _ := readMessage(jsontext.Value(one)) // it was read before
		if m.id == nil || m.method == "" {
			continue
		}
		_ = m.id.Canonicalize() // it is valid
		if used[string(m.id)] {
			return errBatch
		}
		used[string(m.id)] = true
	}
	return nil
}

// readMessage reads a message as the SDK does: by exact names, in whatever way they are
// written.
func readMessage(text jsontext.Value) (m message, err error) {
	if text.Kind() != '{' {
		return m, errNoMessage
	}
	err = members(text, func(name string, value jsontext.Value) {
		switch name {
		case "id":
			m.id = value
		case "method":
			_ = json.Unmarshal(value, &m.method) // what is no string is the SDK's to refuse
		case "params":
			m.params = value
		}
	})
	return m, err
}

// members shows those of an object.
func members(object jsontext.Value, show func(name string, value jsontext.Value)) error {
	in := reader(object)
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for in.PeekKind() != '}' {
		token, err := in.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := in.ReadValue()
		switch {
		case err != nil:
			return err
		case seen[name]:
			return errTwice
		}
		seen[name] = true
		show(name, value.Clone())
	}
	return nil
}

// echoes reports whether an answer can have the id.
func echoes(id jsontext.Value) bool {
	switch id.Kind() {
	case '"':
		return id.IsValid() // no half of a character, which would come back as another
	case '0':
		n, err := strconv.ParseInt(string(id), 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == string(id) && -mostID <= n && n <= mostID
	default:
		return false
	}
}

// refusal is an error of the protocol that answers to the id, as it was written.
func refusal(id jsontext.Value, code int64, words string) []byte {
	if id == nil {
		id = jsontext.Value("null")
	}
	text, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc.Error   `json:"error"`
	}{"2.0", json.RawMessage(id), jsonrpc.Error{Code: code, Message: words}})
	if err != nil {
		panic(err) // the id was read before
	}
	return text
}
