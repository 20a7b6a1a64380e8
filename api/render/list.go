package render

import (
	"strings"

	"afoot/registry"
)

// List words a list of tasks, one line each, without a newline at the end.
func List(tasks []registry.Snapshot) string {
	if len(tasks) == 0 {
		return "(no background tasks)"
	}
	var b strings.Builder
	for i, t := range tasks {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(string(t.ID) + " [" + string(t.Kind) + "] " + string(t.Status) + " — " + t.Label)
	}
	return b.String()
}
