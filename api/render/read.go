package render

import (
	"strconv"
	"strings"

	"afoot/registry"
)

const (
	outputMarker = "\n[output truncated]"
	noOutput     = "(no new output)"
	stderrLine   = "[stderr]\n"
)

// Read words a read: the output, a newline if it lacks one, the status line.
// What a second stream has follows the first behind a line of its own. Bytes that
// were dropped before the reader came are told first, for each stream, and count as
// output, as does that line. Under the task's limit the status line stays, then a
// marker, then the tail of the output.
func Read(r registry.Read) string {
	output := section(r.Text, r.Skipped)
	if r.Stderr != nil {
		if second := section(r.Stderr.Text, r.Stderr.Skipped); second != "" {
			if output != "" && !strings.HasSuffix(output, "\n") {
				output += "\n"
			}
			output += stderrLine + second
		}
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

// section gives what one stream adds to the output.
func section(text string, skipped int64) string {
	if skipped <= 0 {
		return text
	}
	return "[" + strconv.FormatInt(skipped, 10) + " bytes of older output were dropped]\n" + text
}
