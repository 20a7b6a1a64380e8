package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"afoot/registry"
)

// maxBody bounds the body of a request; firstRead is the most that is made ready for
// it before it has come.
const (
	maxBody   = 2 << 20
	firstRead = 64 << 10
)

// readBody gives the whole body, which must be application/json.
func readBody(c *call, r *http.Request) ([]byte, error) {
	if err := checkMedia(r.Header); err != nil {
		return nil, err
	}
	return bodyBytes(c, r)
}

// readOptionalBody is readBody for calls that may come without one.
func readOptionalBody(c *call, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return []byte("{}"), nil
	}
	return readBody(c, r)
}

func bodyBytes(c *call, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, &http.MaxBytesError{Limit: maxBody}
	}
	// A caller who stops sending is not waited for.
	_ = c.control.SetReadDeadline(c.started.Add(c.api.writeTimeout))
	var data bytes.Buffer
	data.Grow(int(min(max(r.ContentLength, 0), firstRead)) + bytes.MinRead)
	_, err := data.ReadFrom(http.MaxBytesReader(c.ResponseWriter, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); err != nil && !large {
		err = registry.Wrap(registry.CodeInvalid, err, "The body could not be read to its end.")
	}
	if err == nil {
		c.unread = false
		// From here on a deadline would look like the end of the connection.
		_ = c.control.SetReadDeadline(time.Time{})
	}
	return data.Bytes(), err
}

// bodyless refuses a body where there is nothing to say. The server notices that
// a caller has left only behind the end of the body, so an unread one would make
// an answer to nobody look delivered.
func bodyless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodDelete:
			if r.ContentLength != 0 {
				callOf(w).fail(r, invalid("A %s takes no body.", r.Method))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// checkMedia refuses bodies that are not plain application/json in UTF-8.
func checkMedia(h http.Header) error {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return registry.Errorf(CodeUnsupportedMedia, "The Content-Encoding %.40q is not supported; send the body as it is.", e)
	}
	given := h.Get("Content-Type")
	if given == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	if charset, ok := params["charset"]; err == nil && media == "application/json" && (!ok || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	return registry.Errorf(CodeUnsupportedMedia, "The Content-Type must be application/json, not %.80q.", given)
}

// decode reads a body into a wire type: every member known and there once, no
// null, valid UTF-8, nothing behind it.
func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true), json.WithUnmarshalers(refuseNull())); err != nil {
		return badJSON(err)
	}
	return nil
}

var errNull = errors.New("null")

// refuseNull makes null a wrong type everywhere; an absent member is left out.
func refuseNull() *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
		if d.PeekKind() == 'n' {
			return errNull
		}
		return errors.ErrUnsupported
	})
}

// badJSON words what is wrong with a body, and where.
func badJSON(err error) error {
	var (
		syntax *jsontext.SyntacticError
		sense  *json.SemanticError
	)
	switch {
	case errors.As(err, &syntax):
		if errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
			return invalid("The member %s is there twice.", member(syntax.JSONPointer))
		}
		if errors.Is(syntax.Err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return invalid("The body ends in the middle of its JSON%s.", place(syntax.JSONPointer))
		}
		return invalid("The body is not JSON: %v, at byte %d%s.", syntax.Err, syntax.ByteOffset, place(syntax.JSONPointer))
	case errors.As(err, &sense):
		if errors.Is(sense.Err, json.ErrUnknownName) {
			return invalid("The member %s is unknown here.", member(sense.JSONPointer))
		}
		if sense.JSONPointer == "" {
			return invalid("The body must be a JSON object.")
		}
		return invalid("The member %s has a wrong type or value%s.", member(sense.JSONPointer), found(sense))
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("The body is empty or ends in the middle of its JSON.")
	default:
		return registry.Wrap(registry.CodeInvalid, err, "The body is not JSON that this call understands.")
	}
}

// member names a member for people: quoted, without the pointer's first slash.
func member(p jsontext.Pointer) string {
	name := strings.TrimPrefix(string(p), "/")
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:80], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

func place(p jsontext.Pointer) string {
	if p == "" {
		return ""
	}
	return " near " + member(p)
}

// found says what stood in the place of a good value.
func found(e *json.SemanticError) string {
	if errors.Is(e.Err, errNull) {
		return ": null"
	}
	if name := kindName(e.JSONKind); name != "" {
		return ": " + name
	}
	return ""
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return ""
	}
}
