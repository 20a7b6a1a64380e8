package mcp

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/registry"
)

// A log as a resource.
const (
	logPrefix   = "afoot://tasks/"
	logSuffix   = "/log"
	logMIME     = "text/plain"
	rawMIME     = "application/octet-stream"
	logTemplate = logPrefix + "{id}" + logSuffix
)

const (
	// listPage bounds one page of the list, logPage what is read of a log: its tail.
	listPage = 100
	logPage  = 1 << 20
	// readTries bounds how often a piece that was dropped meanwhile is read anew.
	readTries = 20
)

// logURI names the log of a task.
func logURI(id registry.ID) string { return logPrefix + string(id) + logSuffix }

// logOf reads the name of a log; what no task can have is "".
func logOf(uri string) registry.ID {
	id, ok := strings.CutPrefix(uri, logPrefix)
	id, end := strings.CutSuffix(id, logSuffix)
	if _, _, possible := registry.ID(id).Parse(); !ok || !end || !possible {
		return ""
	}
	return registry.ID(id)
}

func (s *Server) addResources() {
	s.server.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: logTemplate,
		Name:        "task log",
		Title:       "Log of a task",
		Description: "What a task has printed, its tail if that is long. Reading it consumes nothing. A subscription hears of the end of the task.",
		MIMEType:    logMIME,
	}, s.readLog)
}

// listResources names the logs of the caller's own tasks.
func (s *Server) listResources(ctx context.Context, x *Exchange, params *sdk.ListResourcesParams) (*sdk.ListResourcesResult, error) {
	opts := registry.ListOptions{Limit: listPage}
	if params != nil {
		opts.After = params.Cursor
	}
	list, err := s.cfg.Service.List(ctx, x.caller(), opts)
	if registry.CodeOf(err) == registry.CodeInvalid {
		return nil, invalidParams("the cursor is not one of this list")
	}
	if err != nil {
		return nil, x.refuse(err)
	}
	result := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, NextCursor: list.Next}
	result.CacheScope = "private"
	for _, t := range list.Tasks {
		if t.Owner.Session != x.caller().Session {
			continue // unowned, and everybody's
		}
		result.Resources = append(result.Resources, &sdk.Resource{
			URI:         logURI(t.ID),
			Name:        string(t.ID),
			Title:       t.Label,
			Description: "log of " + string(t.ID) + ", " + string(t.Status),
			MIMEType:    logMIME,
			Size:        t.OutputBytes - t.DroppedBytes,
		})
	}
	return result, nil
}

// readLog gives the tail of a log: as text if it is text, else as bytes.
func (s *Server) readLog(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	x, uri := within(ctx), req.Params.URI
	id := logOf(uri)
	if x == nil || id == "" {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	log, err := s.cfg.Service.OpenLog(ctx, x.caller(), id, registry.StreamStdout)
	switch registry.CodeOf(err) {
	case "":
	case registry.CodeUnknownTask, registry.CodeForeignTask, registry.CodeGone:
		return nil, sdk.ResourceNotFoundError(uri)
	case registry.CodeConflict: // final output only
		return s.readFinal(ctx, x, id, uri)
	default:
		return nil, x.refuse(err)
	}
	defer func() { _ = log.Close() }()
	for range readTries {
		first, next, ended := log.Bounds()
		begin := max(first, next-logPage)
		data := make([]byte, next-begin)
		if _, err = log.ReadAt(data, begin); err != nil && !errors.Is(err, io.EOF) {
			continue // dropped meanwhile
		}
		return contents(uri, data, begin, next, first, ended), nil
	}
	return nil, x.refuse(err)
}

func (s *Server) readFinal(ctx context.Context, x *Exchange, id registry.ID, uri string) (*sdk.ReadResourceResult, error) {
	read, err := s.cfg.Service.Look(ctx, x.caller(), id, 0, registry.LookOptions{LimitBytes: logPage})
	if err != nil {
		return nil, x.refuse(err)
	}
	return contents(uri, []byte(read.Text), read.Offset, read.NextOffset, read.Dropped, read.EOF), nil
}

// contents is a piece of output. One that begins or ends inside a character is text
// without that.
func contents(uri string, data []byte, begin, next, dropped int64, ended bool) *sdk.ReadResourceResult {
	c := &sdk.ResourceContents{URI: uri, MIMEType: logMIME}
	text := data
	for skip := 0; skip < utf8.UTFMax && len(text) > 0 && begin > 0 && !utf8.RuneStart(text[0]); skip++ {
		text = text[1:]
	}
	offset := begin + int64(len(data)-len(text))
	if cut := cutEnd(text); !ended && cut > 0 {
		text = text[:len(text)-cut]
	}
	if utf8.Valid(text) {
		c.Text, next = string(text), offset+int64(len(text))
		if len(text) == 0 {
			c.Blob = []byte{} // the SDK leaves out an empty text, and one of both has to be there
		}
	} else {
		c.MIMEType, c.Blob, offset = rawMIME, data, begin
	}
	c.Meta = sdk.Meta{"afoot/offset": offset, "afoot/nextOffset": next, "afoot/droppedBytes": dropped, "afoot/eof": ended}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{c}}
}

// cutEnd counts the bytes of a character that has not wholly arrived.
func cutEnd(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
