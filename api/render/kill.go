package render

import "afoot/registry"

// Kill words what a kill met, fitted into the task's limit.
func Kill(outcome registry.KillOutcome, s registry.Snapshot) string {
	text := "requested cancellation of task " + string(s.ID)
	if outcome == registry.KillAlreadyFinished {
		text = "task " + string(s.ID) + " had already finished " + StatusLine(s)
	}
	return Fit(text, s.OutputLimitBytes)
}
