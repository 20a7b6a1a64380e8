package render

import "afoot/registry"

// StatusLine words where a task stands, with the detail if there is one.
func StatusLine(s registry.Snapshot) string {
	if s.Detail == "" {
		return "[status: " + string(s.Status) + "]"
	}
	return "[status: " + string(s.Status) + ", " + s.Detail + "]"
}
