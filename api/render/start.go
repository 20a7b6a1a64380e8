package render

import "afoot/registry"

// Started words a start, fitted into the task's limit.
func Started(s registry.Snapshot) string {
	return Fit("started background task "+string(s.ID), s.OutputLimitBytes)
}
