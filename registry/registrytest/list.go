package registrytest

import (
	"fmt"

	"afoot/registry"
)

// listCases: rule 5 for many tasks, filters and pages.
func listCases() []testCase {
	return []testCase{
		{name: "nothing lists as nothing", run: listEmpty},
		{name: "own and unowned tasks in registration order and nobody else's", run: listOwn},
		{name: "registration order runs over kinds", run: listOverKinds},
		{name: "a list shows each task as it is", run: listSnapshots},
		{name: "filters by status and kind", run: listFilters},
		{name: "pages join to the whole list", run: listPages},
		{name: "a page is filled by tasks that pass the filter", run: listFilteredPages},
		{name: "pages go on where they were when tasks come and go", run: listPagesMove},
		{name: "a foreign page mark is invalid", run: listForeignMark},
	}
}

func listEmpty(w *world) {
	for _, c := range []registry.Caller{alice(), nobody()} {
		l, err := w.List(w.ctx, c, registry.ListOptions{Limit: 5})
		w.is.NoError(err)
		w.is.Empty(l.Tasks)
		w.is.Empty(l.Next)
	}
}

func listOwn(w *world) {
	var alices, bobs, unowned []registry.ID
	for i := range 12 {
		switch i % 3 {
		case 0:
			id := w.start(alice(), Script{}).ID
			alices = append(alices, id)
		case 1:
			id := w.start(nobody(), Script{}).ID
			alices, bobs, unowned = append(alices, id), append(bobs, id), append(unowned, id)
		case 2:
			bobs = append(bobs, w.start(bob(), Script{}).ID)
		}
	}
	w.is.Equal(alices, w.ids(alice(), registry.ListOptions{}))
	w.is.Equal(bobs, w.ids(bob(), registry.ListOptions{}))
	w.is.Equal(unowned, w.ids(nobody(), registry.ListOptions{}))
	w.is.Equal(unowned, w.ids(registry.Caller{Session: "carol"}, registry.ListOptions{}))
}

func listOverKinds(w *world) {
	w.AttachProducer("other", w.jobs)
	var want []registry.ID
	for i := range 8 {
		kind := job
		if i%3 == 0 {
			kind = "other"
		}
		started, err := w.Start(w.ctx, alice(), registry.StartRequest{Spec: registry.Spec{Kind: kind}})
		w.is.NoError(err)
		want = append(want, started.Snapshot.ID)
	}
	w.is.Equal(want, w.ids(alice(), registry.ListOptions{}))
}

func listSnapshots(w *world) {
	first, second := w.start(alice(), Script{Label: "one"}), w.start(alice(), Script{Label: "two"})
	first.Complete("exit code: 0")
	second.Output.Append("abc")
	w.settled()
	l, err := w.List(w.ctx, alice(), registry.ListOptions{})
	w.is.NoError(err)
	w.is.Equal([]registry.Snapshot{w.get(first), w.get(second)}, l.Tasks)
}

func listFilters(w *world) {
	w.AttachProducer("other", w.jobs)
	running := w.start(alice(), Script{})
	stopping := w.start(alice(), Script{})
	_, _, err := w.Kill(w.ctx, alice(), stopping.ID, "")
	w.is.NoError(err)
	ended := map[registry.Status]registry.ID{}
	for _, s := range []registry.Status{
		registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed,
	} {
		work := w.start(alice(), Script{})
		work.Settle(registry.Outcome{Status: s})
		ended[s] = work.ID
	}
	started, err := w.Start(w.ctx, alice(), registry.StartRequest{Spec: registry.Spec{Kind: "other"}})
	w.is.NoError(err)
	other := started.Snapshot.ID

	only := func(o registry.ListOptions, want ...registry.ID) {
		w.t.Helper()
		w.is.ElementsMatch(want, w.ids(alice(), o))
	}
	only(registry.ListOptions{Status: registry.StatusRunning}, running.ID, other)
	only(registry.ListOptions{Status: registry.StatusStopping}, stopping.ID)
	for s, id := range ended {
		only(registry.ListOptions{Status: s}, id)
	}
	only(registry.ListOptions{Kind: "other"}, other)
	only(registry.ListOptions{Kind: "other", Status: registry.StatusKilled})
	only(registry.ListOptions{Kind: job, Status: registry.StatusRunning}, running.ID)
	only(registry.ListOptions{Kind: "no-such"})
}

// paged walks all pages and asserts their size.
func (w *world) paged(c registry.Caller, o registry.ListOptions) []registry.ID {
	w.t.Helper()
	ids := []registry.ID{}
	for pages := 0; ; pages++ {
		w.is.Less(pages, 100, "the pages have no end")
		l, err := w.List(w.ctx, c, o)
		w.is.NoError(err)
		for _, s := range l.Tasks {
			ids = append(ids, s.ID)
		}
		if l.Next == "" {
			return ids
		}
		w.is.Len(l.Tasks, o.Limit, "only the last page may be short")
		o.After = l.Next
	}
}

func listPages(w *world) {
	for range 3 {
		w.start(alice(), Script{})
		w.start(bob(), Script{})
		w.start(nobody(), Script{})
	}
	all := w.ids(alice(), registry.ListOptions{})
	w.is.Len(all, 6)
	for limit := 1; limit <= 7; limit++ {
		w.is.Equal(all, w.paged(alice(), registry.ListOptions{Limit: limit}), "limit %d", limit)
	}
	for _, limit := range []int{2, 3, 6} {
		o, pages := registry.ListOptions{Limit: limit}, 1
		for ; ; pages++ {
			l, err := w.List(w.ctx, alice(), o)
			w.is.NoError(err)
			if l.Next == "" {
				break
			}
			o.After = l.Next
		}
		w.is.Equal(6/limit, pages, "the last full page has no next")
	}
}

func listFilteredPages(w *world) {
	var want []registry.ID
	for i := range 9 {
		work := w.start(alice(), Script{})
		if i%2 == 0 {
			work.Complete("")
			want = append(want, work.ID)
		}
	}
	o := registry.ListOptions{Status: registry.StatusCompleted, Limit: 2}
	w.is.Equal(want, w.paged(alice(), o))
}

func listPagesMove(w *world) {
	var works []*Work
	for range 5 {
		work := w.start(alice(), Script{})
		work.Complete("")
		works = append(works, work)
	}
	l, err := w.List(w.ctx, alice(), registry.ListOptions{Limit: 2})
	w.is.NoError(err)
	w.is.Equal(works[1].ID, l.Tasks[1].ID)
	// The last task shown, the one before it and the next one go; another comes.
	for _, work := range works[:3] {
		w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	}
	late := w.start(alice(), Script{})
	w.is.Equal([]registry.ID{works[3].ID, works[4].ID, late.ID},
		w.paged(alice(), registry.ListOptions{Limit: 2, After: l.Next}))
}

func listForeignMark(w *world) {
	for range 3 {
		w.start(alice(), Script{})
	}
	for _, mark := range []string{"no mark", "-1", "%", "job-1 ", "\x00", fmt.Sprint(1.5), "999999999999999999999999"} {
		_, err := w.List(w.ctx, alice(), registry.ListOptions{Limit: 1, After: mark})
		w.is.Equal(registry.CodeInvalid, registry.CodeOf(err), "mark %q", mark)
	}
}
