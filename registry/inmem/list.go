package inmem

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"afoot/registry"
)

// Get implements [registry.Tasks].
func (s *Service) Get(ctx context.Context, caller registry.Caller, id registry.ID) (registry.Snapshot, error) {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err != nil {
		s.mu.Unlock()
		return registry.Snapshot{}, s.refused(ctx, err)
	}
	v := r.viewLocked()
	s.mu.Unlock()
	s.written(ctx, v.mark)
	return v.fill(), nil
}

// Describe implements [registry.Tasks].
func (s *Service) Describe(ctx context.Context, caller registry.Caller, id registry.ID) (registry.Description, error) {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err != nil {
		s.mu.Unlock()
		return registry.Description{}, s.refused(ctx, err)
	}
	v, waiters := r.viewLocked(), int(r.blocked)
	s.mu.Unlock()
	s.written(ctx, v.mark)
	var request json.RawMessage
	if request, err = r.run.Request(); err != nil {
		return registry.Description{}, registry.Wrap(registry.CodeInternal, err, "the request of task %s can't be read", id)
	}
	return registry.Description{Snapshot: v.fill(), Request: request, Waiters: waiters}, nil
}

// List implements [registry.Tasks]. It looks only at the caller's own and at
// unowned tasks.
func (s *Service) List(ctx context.Context, caller registry.Caller, opts registry.ListOptions) (registry.List, error) {
	after, err := parseAfter(opts.After)
	if err != nil {
		return registry.List{}, err
	}
	if opts.Status != "" && !opts.Status.Valid() {
		return registry.List{}, registry.Errorf(registry.CodeInvalid, "status must be running, stopping, completed, killed or failed")
	}
	views, more, err := s.viewsAfter(caller, opts, after)
	if err != nil {
		return registry.List{}, s.refused(ctx, err)
	}
	s.written(ctx, views.mark)
	out := registry.List{Tasks: make([]registry.Snapshot, len(views.views))}
	for i, v := range views.views {
		out.Tasks[i] = v.fill()
	}
	if more {
		out.Next = formatAfter(views.last)
	}
	return out, nil
}

type viewPage struct {
	views []view
	last  uint64
	// mark has to be written before the page is shown: what it shows, and that what it
	// does not show is gone.
	mark registry.Mark
}

func (s *Service) viewsAfter(caller registry.Caller, opts registry.ListOptions, after uint64) (page viewPage, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.agentLocked(caller); err != nil {
		return viewPage{}, false, err
	}
	page.mark = s.rows.removals
	own, nobodys := s.tasksAfterLocked(caller.Session, after), []*record(nil)
	if caller.Session != "" {
		nobodys = s.tasksAfterLocked("", after)
	}
	for len(own) > 0 || len(nobodys) > 0 {
		from := &own
		if len(own) == 0 || len(nobodys) > 0 && nobodys[0].seq < own[0].seq {
			from = &nobodys
		}
		r := (*from)[0]
		*from = (*from)[1:]
		if opts.Status != "" && r.snap.status.word() != opts.Status || opts.Kind != "" && r.snap.kind() != opts.Kind {
			continue
		}
		if opts.Limit > 0 && len(page.views) == opts.Limit {
			return page, true, nil
		}
		page.views, page.last = append(page.views, r.viewLocked()), r.seq
		page.mark = max(page.mark, r.mark)
	}
	return page, false, nil
}

func (s *Service) tasksAfterLocked(name string, after uint64) []*record {
	got := s.sessions[name]
	if got == nil {
		return nil
	}
	i, _ := slices.BinarySearchFunc(got.tasks, after+1, bySeq)
	return got.tasks[i:]
}

const afterPrefix = "r"

func formatAfter(seq uint64) string { return afterPrefix + strconv.FormatUint(seq, 36) }

func parseAfter(after string) (uint64, error) {
	if after == "" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(after, afterPrefix)
	seq, err := strconv.ParseUint(digits, 36, 63)
	if !ok || err != nil || formatAfter(seq) != after {
		return 0, registry.Errorf(registry.CodeInvalid, "after must be the next of an earlier page")
	}
	return seq, nil
}
