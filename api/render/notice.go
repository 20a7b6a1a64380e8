package render

import "afoot/registry"

const (
	noticeAction = "\nDone; task_output."
	noticeMarker = "\n[notice truncated]"
)

// Notice words the one message that says a task ended. Under the task's limit
// survive, in this order: what to do, which task, a marker, the head of the facts.
func Notice(s registry.Snapshot) string {
	var (
		prefix = "background task " + string(s.ID)
		facts  = " (" + string(s.Kind) + ": " + s.Label + ") finished " + StatusLine(s)
		limit  = s.OutputLimitBytes
	)
	if whole := prefix + facts + ". Read its output with task_output."; fits(whole, limit) {
		return whole
	}
	room := limit - int64(len(noticeAction))
	if room < 0 {
		return tail(noticeAction, limit)
	}
	if room < int64(len(prefix)) {
		return head(prefix, room) + noticeAction
	}
	room -= int64(len(prefix) + len(noticeMarker))
	if room < 0 {
		return prefix + noticeAction
	}
	return prefix + head(facts, room) + noticeMarker + noticeAction
}
