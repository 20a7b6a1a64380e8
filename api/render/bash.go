package render

import (
	"strconv"
	"strings"

	"afoot/registry"
)

const noBashOutput = "(no output)"

// Command is what a command came to for a caller who waited for it.
type Command struct {
	// Output is what was printed, Skipped how many bytes of it are not there.
	Output  string
	Skipped int64
	// Log says where all of it can be had.
	Log string
	// Of how it ended the first one that is not zero is told.
	TimedOutMs int64
	Signal     string
	ExitCode   int
	// Running is the task that it goes on as; empty if it has ended.
	Running registry.ID
}

// Bash words a command's result: the output, then on lines of their own that some of
// it was left out, and how it ended unless that was well. Within limit the lines stay,
// and as much of the output's tail as there is room for.
func Bash(c Command, limit int64) string {
	output := c.Output
	if output == "" && c.Skipped <= 0 {
		output = noBashOutput
	}
	var (
		end  = c.end()
		cut  = "\n[output truncated; full output: " + c.Log + "]"
		body = strings.TrimSuffix(output, "\n")
	)
	if output == "" { // all of it was left out
		cut = cut[len("\n"):]
	}
	switch {
	case c.Skipped > 0:
		if fits(body+cut+end, limit) {
			return body + cut + end
		}
	case end == "":
		if fits(output, limit) {
			return output
		}
	case fits(body+end, limit):
		return body + end
	}
	return tailBefore(body, cut, end, limit)
}

// end gives the last line with the newline before it; "" for none.
func (c Command) end() string {
	switch {
	case c.Running != "":
		return "\n[still running as background task " + string(c.Running) + "]"
	case c.TimedOutMs > 0:
		return "\n[timed out after " + strconv.FormatInt(c.TimedOutMs, 10) + "ms]"
	case c.Signal != "":
		return "\n[killed by signal: " + c.Signal + "]"
	case c.ExitCode != 0:
		return "\n[exit code: " + strconv.Itoa(c.ExitCode) + "]"
	}
	return ""
}
