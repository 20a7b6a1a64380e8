package api

import (
	"bytes"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"afoot/registry"
)

// decodeSpec reads a start request: the members that every kind has, and the rest
// as it stands, for the producer of that kind to read.
func decodeSpec(body []byte) (registry.Spec, error) {
	var (
		spec   registry.Spec
		fields bytes.Buffer
		in     = jsontext.NewDecoder(bytes.NewReader(body))
	)
	if in.PeekKind() != '{' {
		if err := in.SkipValue(); err != nil {
			return spec, badJSON(err)
		}
		return spec, invalid("The body must be a JSON object.")
	}
	if _, err := in.ReadToken(); err != nil {
		return spec, badJSON(err)
	}
	fields.WriteByte('{')
	for in.PeekKind() == '"' {
		if err := readMember(in, &spec, &fields); err != nil {
			return spec, err
		}
	}
	if _, err := in.ReadToken(); err != nil {
		return spec, badJSON(err)
	}
	if _, err := in.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder's own end
		return spec, invalid("There is something behind the JSON object of the body.")
	}
	if spec.Kind == "" {
		return spec, invalid("The member \"kind\" is missing; it says what kind of task to start.")
	}
	fields.WriteByte('}')
	spec.Fields = fields.Bytes()
	return spec, nil
}

// readMember reads one member of a start request.
func readMember(in *jsontext.Decoder, spec *registry.Spec, fields *bytes.Buffer) error {
	quoted, err := in.ReadValue()
	if err != nil {
		return badJSON(err)
	}
	quoted = quoted.Clone()
	name, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return badJSON(err)
	}
	value, err := in.ReadValue()
	if err != nil {
		return badJSON(err)
	}
	switch string(name) {
	case "kind":
		kind, err := textValue("kind", value)
		if err != nil {
			return err
		}
		spec.Kind = registry.Kind(kind)
		if kind == "" {
			return invalid("The member \"kind\" is empty; it says what kind of task to start.")
		}
	case "label":
		label, err := textValue("label", value)
		if err != nil {
			return err
		}
		spec.Label = &label
	case "outputLimitBytes":
		limit, err := integerValue("outputLimitBytes", value)
		if err != nil {
			return err
		}
		spec.OutputLimitBytes = &limit
	default:
		if fields.Len() > len("{") {
			fields.WriteByte(',')
		}
		fields.Write(quoted)
		fields.WriteByte(':')
		fields.Write(value)
	}
	return nil
}

func textValue(name string, v jsontext.Value) (string, error) {
	if v.Kind() != '"' {
		return "", invalid("The member %q must be a string, not %s.", name, kindName(v.Kind()))
	}
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", badJSON(err)
	}
	return string(text), nil
}

func integerValue(name string, v jsontext.Value) (int64, error) {
	if v.Kind() != '0' {
		return 0, invalid("The member %q must be an integer, not %s.", name, kindName(v.Kind()))
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, invalid("The member %q must be an integer of at most 2^53-1, not %.40s.", name, v)
	}
	return n, nil
}
