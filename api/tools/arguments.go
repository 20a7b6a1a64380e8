package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"afoot/registry"
)

// The arguments. An absent optional one is nil or zero.
type (
	listArguments struct{}

	outputArguments struct {
		TaskID    registry.ID `json:"task_id" jsonschema:"the task's id, such as bash-1"`
		Wait      bool        `json:"wait,omitzero" jsonschema:"wait until the task has ended or the time is over"`
		TimeoutMs millis      `json:"timeout_ms,omitzero" jsonschema:"how long to wait at most, in milliseconds"`
	}

	killArguments struct {
		TaskID registry.ID `json:"task_id" jsonschema:"the task's id, such as bash-1"`
		Reason string      `json:"reason,omitzero" jsonschema:"one line for the log"`
	}

	foregroundArguments struct {
		Command     string `json:"command" jsonschema:"the command, as bash -c takes it"`
		Description string `json:"description" jsonschema:"what it is for, in one short line"`
		Workdir     string `json:"workdir,omitzero" jsonschema:"the directory to run it in; the daemon's default without it"`
		TimeoutMs   millis `json:"timeout_ms,omitzero" jsonschema:"stop it after this time, in milliseconds"`
	}

	bashArguments struct {
		foregroundArguments

		RunInBackground bool   `json:"run_in_background,omitzero" jsonschema:"answer at once with a task id, and let it run as long as it takes"`
		YieldMs         millis `json:"yield_ms,omitzero" jsonschema:"wait so many milliseconds; if it still runs then, it goes on as a background task"`
	}
)

// millis is a positive number of milliseconds; a larger one than 64 bits hold counts as
// the largest that they do.
type millis int64

// UnmarshalJSON takes plain decimal digits alone.
func (m *millis) UnmarshalJSON(data []byte) error {
	for _, b := range data {
		if b < '0' || b > '9' {
			return errMillis
		}
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		n = math.MaxInt64
	}
	if n == 0 {
		return errMillis
	}
	*m = millis(n)
	return nil
}

var (
	errMillis = errors.New("not a positive whole number of milliseconds")
	errNull   = errors.New("null")
)

// decode reads arguments strictly: every name known and there once, no null, valid
// UTF-8, and all that must be there.
func decode(data []byte, arguments any, required ...string) error {
	if len(data) == 0 {
		data = []byte("{}")
	}
	null := json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
		if d.PeekKind() == 'n' {
			return errNull
		}
		return errors.ErrUnsupported
	})
	if err := json.Unmarshal(data, arguments, json.RejectUnknownMembers(true), json.WithUnmarshalers(null)); err != nil {
		return explain(err)
	}
	for _, name := range required {
		if _, given := memberOf(data, name); !given {
			return invalid("The argument %q is missing.", name)
		}
	}
	return nil
}

// explain words what is wrong with arguments.
func explain(err error) error {
	var (
		syntax *jsontext.SyntacticError
		sense  *json.SemanticError
	)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return invalid("The argument %s is there twice.", argument(syntax.JSONPointer))
	case !errors.As(err, &sense) || sense.JSONPointer == "":
		return invalid("The arguments must be a JSON object.")
	case errors.Is(sense.Err, errNull):
		return invalid("The argument %s must not be null; leave it out if it has no value.", argument(sense.JSONPointer))
	case errors.Is(sense.Err, json.ErrUnknownName):
		return invalid("The argument %s is unknown here.", argument(sense.JSONPointer))
	}
	return invalid("The argument %s must be %s.", argument(sense.JSONPointer), wanted(sense.GoType))
}

// wanted words the type that an argument should have had.
func wanted(t reflect.Type) string {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[millis]():
		return "a positive whole number of milliseconds"
	case t != nil && t.Kind() == reflect.String:
		return "a string"
	case t != nil && t.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "of another type"
	}
}

// argument names an argument for people: quoted, and not too long.
func argument(p jsontext.Pointer) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(string(p), "/"), "/")
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:80], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

// memberOf finds a member of an object, whatever else is wrong with that.
func memberOf(data []byte, name string) (jsontext.Value, bool) {
	in := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, false
	}
	for in.PeekKind() == '"' {
		token, err := in.ReadToken()
		if err != nil {
			return nil, false
		}
		found := token.String() == name
		value, err := in.ReadValue()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false
		}
		if found {
			return value, true
		}
	}
	return nil, false
}

// about gives the task that arguments name, if they name one, be they right or not.
func about(data []byte) registry.ID {
	value, given := memberOf(data, "task_id")
	if !given || value.Kind() != '"' {
		return ""
	}
	id, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return registry.ID(id)
}

func (a *killArguments) check() error {
	if !registry.ValidReason(a.Reason) {
		return invalid("The argument \"reason\" must be one line of at most %d bytes without control characters.", registry.MaxReasonBytes)
	}
	return nil
}

// check refuses what contradicts itself. What a command may be is its producer's to say.
func (a *bashArguments) check() error {
	if a.Command == "" {
		return invalid("The argument \"command\" is empty.")
	}
	if err := registry.ValidateLabel(a.Description); err != nil {
		if known, ok := errors.AsType[*registry.Error](err); ok {
			return invalid("The argument \"description\" %s.", strings.TrimPrefix(known.Message, "label "))
		}
		return err
	}
	if a.RunInBackground && a.YieldMs > 0 {
		return invalid("The arguments \"run_in_background\" and \"yield_ms\" exclude each other: the one does not wait at all.")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, format, args...)
}
