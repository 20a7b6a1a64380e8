package bash

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"afoot/registry"
)

const (
	maxCommandBytes = 1 << 20
	// maxStringBytes is the most that the kernel takes as one argument or one
	// variable of the environment (MAX_ARG_STRLEN, less its closing NUL).
	maxStringBytes = 131_071
)

// request is a start request with every default resolved.
type request struct {
	command string
	workdir string
	// env is sorted by name.
	env       []variable
	timeoutMs int64 // 0: none
}

type variable struct{ name, value string }

// members is the wire form; raw, so that null and wrong types can be told.
type members struct {
	Command   jsontext.Value `json:"command"`
	Workdir   jsontext.Value `json:"workdir"`
	Env       jsontext.Value `json:"env"`
	TimeoutMs jsontext.Value `json:"timeoutMs"`
	Stdin     jsontext.Value `json:"stdin"`
	Streams   jsontext.Value `json:"streams"`
	Leftovers jsontext.Value `json:"leftovers"`
}

func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, format, args...)
}

// parse reads and checks everything but the file system.
func parse(fields []byte) (request, error) {
	var m members
	if len(fields) > 0 {
		if err := json.Unmarshal(fields, &m, json.RejectUnknownMembers(true)); err != nil {
			return request{}, explain(err)
		}
	}
	var r request
	var err error
	if r.command, err = parseCommand(m.Command); err != nil {
		return request{}, err
	}
	if r.workdir, err = parseWorkdir(m.Workdir); err != nil {
		return request{}, err
	}
	if r.env, err = parseEnv(m.Env); err != nil {
		return request{}, err
	}
	if r.timeoutMs, err = parseTimeout(m.TimeoutMs); err != nil {
		return request{}, err
	}
	return r, errors.Join(
		only("stdin", m.Stdin, "null", "open"),
		only("streams", m.Streams, "merged", "split"),
		only("leftovers", m.Leftovers, "keep", "stop"),
	)
}

// explain words what is wrong with the JSON itself.
func explain(err error) error {
	var pointer jsontext.Pointer
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		pointer = semantic.JSONPointer
	case errors.As(err, &syntactic):
		pointer = syntactic.JSONPointer
	}
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return invalid("unknown member %q", pointer.LastToken())
	case errors.Is(err, jsontext.ErrDuplicateName):
		return invalid("member %q is given twice", pointer.LastToken())
	default:
		return registry.Wrap(registry.CodeInvalid, err, "the request is not a valid JSON object")
	}
}

// text reads a string without NUL.
func text(field string, value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", invalid("%s must be a string", field)
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", registry.Wrap(registry.CodeInvalid, err, "%s is not a valid string", field)
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "", invalid("%s must not hold a NUL character", field)
	}
	return s, nil
}

func parseCommand(value jsontext.Value) (string, error) {
	if value == nil {
		return "", invalid("command is missing")
	}
	command, err := text("command", value)
	switch {
	case err != nil:
		return "", err
	case command == "":
		return "", invalid("command must not be empty")
	case len(command) > maxCommandBytes:
		return "", registry.Errorf(registry.CodeTooLarge, "command has %d bytes; at most %d are taken", len(command), maxCommandBytes)
	}
	return command, nil
}

func parseWorkdir(value jsontext.Value) (string, error) {
	if value == nil {
		return "", nil
	}
	workdir, err := text("workdir", value)
	if err == nil && workdir == "" {
		err = invalid("workdir must not be empty")
	}
	return workdir, err
}

func parseEnv(value jsontext.Value) ([]variable, error) {
	if value == nil {
		return nil, nil
	}
	if value.Kind() != '{' {
		return nil, invalid("env must be an object of strings")
	}
	var raw map[string]jsontext.Value
	if err := json.Unmarshal(value, &raw); err != nil {
		return nil, explain(err)
	}
	env := make([]variable, 0, len(raw))
	for name, value := range raw {
		if err := checkName(name); err != nil {
			return nil, err
		}
		content, err := text("the value of env "+name, value)
		if err != nil {
			return nil, err
		}
		if n := len(name) + 1 + len(content); n > maxStringBytes {
			return nil, invalid("env %s has %d bytes with its name; at most %d are taken", name, n, maxStringBytes)
		}
		env = append(env, variable{name, content})
	}
	slices.SortFunc(env, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return env, nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return invalid("an env name must not be empty")
	case strings.ContainsAny(name, "=\x00"):
		return invalid("env name %q must not hold '=' or NUL", name)
	case strings.HasPrefix(name, ownPrefix):
		return invalid("env name %q must not begin with %s", name, ownPrefix)
	}
	return nil
}

func parseTimeout(value jsontext.Value) (int64, error) {
	if value == nil {
		return 0, nil
	}
	var ms int64
	if value.Kind() != '0' || json.Unmarshal(value, &ms) != nil || ms < 1 || ms > registry.MaxSafeInteger {
		return 0, invalid("timeoutMs must be an integer from 1 to %d", int64(registry.MaxSafeInteger))
	}
	return ms, nil
}

// only takes a choice of which the first alone is built.
func only(field string, value jsontext.Value, built, other string) error {
	if value == nil {
		return nil
	}
	choice, err := text(field, value)
	switch {
	case err != nil:
		return err
	case choice == built:
		return nil
	case choice == other:
		return invalid("%s %q is not available yet", field, other)
	default:
		return invalid("%s must be %q or %q", field, built, other)
	}
}

// resolve makes the directory absolute. One that is written with "." or ".." is
// resolved as the kernel would, so that PWD can name it.
func (r *request) resolve(base string) error {
	if r.workdir == "" {
		r.workdir = base
	} else if !filepath.IsAbs(r.workdir) {
		r.workdir = base + "/" + r.workdir
	}
	if filepath.Clean(r.workdir) != r.workdir {
		resolved, err := filepath.EvalSymlinks(r.workdir)
		if err != nil {
			return invalid("workdir %q can't be used: %s", r.workdir, reason(err))
		}
		r.workdir = resolved
	}
	return checkDir(r.workdir)
}

// describe is the request for people: of the environment only the names.
func (r *request) describe() (string, error) {
	shown := struct {
		Command   string   `json:"command"`
		Workdir   string   `json:"workdir"`
		Env       []string `json:"env,omitempty"`
		TimeoutMs int64    `json:"timeoutMs,omitzero"`
		Stdin     string   `json:"stdin"`
		Streams   string   `json:"streams"`
		Leftovers string   `json:"leftovers"`
	}{r.command, r.workdir, nil, r.timeoutMs, "null", "merged", "keep"}
	for _, v := range r.env {
		shown.Env = append(shown.Env, v.name)
	}
	data, err := json.Marshal(shown)
	if err != nil {
		return "", fmt.Errorf("describe the request: %w", err)
	}
	return string(data), nil
}
