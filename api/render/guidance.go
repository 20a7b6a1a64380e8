package render

// Guidance is the paragraph about the tools for a system prompt. Background says that
// they can start background tasks; without that those of others are spoken of.
func Guidance(background bool) string {
	first := "Work may be running for you in the background, each under a task id. Keep the ids you are given. "
	if background {
		first = "Long work can run in the background: it gets a task id at once, and you go on. Keep the ids you are given. "
	}
	return first +
		"While a task runs, do other work that does not depend on it; you are told when it ends, so do not ask again and again, " +
		"and do not start the same work a second time. Wait with task_output only when nothing is left to do without the result. " +
		"Before your final answer collect the output of every task that matters to it, and stop with task_kill what nobody needs any more; " +
		"task_list shows what you have if you lost track."
}
