package bash

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"afoot/registry"
)

// text reads a string without NUL.
func text(field string, value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", invalid("%s must be a string, not %s", field, kindName(value.Kind()))
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
		return nil, invalid("env must be an object of strings, not %s", kindName(value.Kind()))
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
		content, err := text(fmt.Sprintf("the value of env %.*s", maxShownBytes, name), value)
		if err != nil {
			return nil, err
		}
		if n := len(name) + 1 + len(content); n > maxStringBytes {
			return nil, invalid("env %.*s has %d bytes with its name; at most %d are taken", maxShownBytes, name, n, maxStringBytes)
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
		return invalid("env name %.*q must not hold '=' or NUL", maxShownBytes, name)
	case strings.HasPrefix(name, ownPrefix):
		return invalid("env name %.*q must not begin with %s", maxShownBytes, name, ownPrefix)
	}
	return nil
}

// parseInt reads an integer from low to high; absent is 0.
func parseInt(field string, value jsontext.Value, low, high int64) (int64, error) {
	if value == nil {
		return 0, nil
	}
	var n int64
	if value.Kind() != '0' || json.Unmarshal(value, &n) != nil || n < low || n > high {
		return 0, invalid("%s must be an integer from %d to %d, not %s", field, low, high, given(value))
	}
	return n, nil
}

// parseChoice reads one of two words and reports whether it is the second; absent
// is the first.
func parseChoice(field string, value jsontext.Value, first, second string) (bool, error) {
	if value == nil {
		return false, nil
	}
	choice, err := text(field, value)
	switch {
	case err != nil:
		return false, err
	case choice != first && choice != second:
		return false, invalid("%s must be %q or %q, not %s", field, first, second, given(value))
	}
	return choice == second, nil
}

// maxShownBytes is how much of a wrong value or name is repeated: a request may be
// large, and what refuses it is read by people.
const maxShownBytes = 64

// given repeats a wrong value as it was given, or its beginning.
func given(value jsontext.Value) string {
	text := strings.Join(strings.Fields(string(value)), " ")
	if len(text) > maxShownBytes {
		text = strings.ToValidUTF8(text[:maxShownBytes], "") + "…"
	}
	return text
}

// kindName says what a value is. What may be a secret is not repeated.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	default:
		return "an object"
	}
}
