package render

import (
	"strconv"
	"strings"

	"afoot/registry"
)

const (
	outputMarker = "\n[output truncated]"
	noOutput     = "(no new output)"
)

// Read words a read: the output, a newline if it lacks one, the status line.
// Bytes that were dropped before the reader came are told first and count as
// output. Under the task's limit the status line stays, then a marker, then the
// tail of the output.
func Read(r registry.Read) string {
	output := r.Text
	if r.Skipped > 0 {
		output = "[" + strconv.FormatInt(r.Skipped, 10) + " bytes of older output were dropped]\n" + output
	}
	if output == "" {
		output = noOutput
	}
	status := StatusLine(r.Snapshot)
	body := strings.TrimSuffix(output, "\n")
	limit := r.Snapshot.OutputLimitBytes
	if whole := len(body) + len("\n") + len(status); limit <= 0 || int64(whole) <= limit {
		return body + "\n" + status
	}
	return tailBefore(body, outputMarker, "\n"+status, limit)
}
