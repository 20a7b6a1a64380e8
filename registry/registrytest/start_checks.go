package registrytest

import (
	"context"
	"errors"
	"strings"

	"afoot/registry"
)

// startCheckCases: rule 1. Everything that can fail comes before the starter.
func startCheckCases() []testCase {
	return []testCase{
		{name: "an unknown kind is invalid", run: unknownKind},
		{name: "an empty kind is invalid", run: emptyKind},
		{name: "a bad label is invalid", run: badLabels},
		{name: "a good label is kept as it is", run: goodLabels},
		{name: "a bad output limit is invalid", run: badLimits},
		{name: "a good output limit is kept", run: goodLimits},
		{name: "a producer's refusal reaches the caller", run: prepareRefuses},
		{name: "a producer's foreign error is not taken for a refusal", run: prepareBreaks},
		{name: "a call that was cancelled before it began starts nothing", run: cancelledBefore},
		{name: "a call that is cancelled during prepare starts nothing", run: cancelledInPrepare},
	}
}

// untouched asserts that nothing was started and no number is missing.
func (w *world) untouched() {
	w.t.Helper()
	w.settled()
	w.is.Zero(w.jobs.Starts(), "the starter ran")
	w.is.Empty(w.log.all(), "somebody was told")
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	w.is.Equal(registry.ID("job-1"), w.start(alice(), Script{}).ID, "an id was burnt")
}

func unknownKind(w *world) {
	_, err := w.Start(w.ctx, alice(), registry.StartRequest{Spec: registry.Spec{Kind: "no-such"}})
	w.refused(err, registry.CodeInvalid)
	w.untouched()
}

func emptyKind(w *world) {
	w.AttachProducer("", w.jobs)
	_, err := w.Start(w.ctx, alice(), registry.StartRequest{})
	w.refused(err, registry.CodeInvalid)
	w.untouched()
}

func badLabels(w *world) {
	for _, label := range []string{
		"", strings.Repeat("x", registry.MaxLabelBytes+1), strings.Repeat("界", 171),
		"two\nlines", "tab\tbed", "nul\x00", "bell\a", "\x7f", "esc\x1b[31m", "next\u0085line",
	} {
		request := w.request(Script{})
		request.Spec.Label = &label
		_, err := w.Start(w.ctx, alice(), request)
		w.is.Equal(registry.CodeInvalid, registry.CodeOf(err), "label %q", label)
	}
	w.untouched()
}

func goodLabels(w *world) {
	for _, label := range []string{
		"x", " ", "make test", "日本語 – ünïcode", strings.Repeat("x", registry.MaxLabelBytes),
	} {
		request := w.request(Script{Label: "never seen"})
		request.Spec.Label = &label
		started, err := w.Start(w.ctx, alice(), request)
		w.is.NoError(err, "label %q", label)
		w.is.Equal(label, started.Snapshot.Label)
	}
	w.is.Equal("from the plan", w.get(w.start(alice(), Script{Label: "from the plan"})).Label)
}

func badLimits(w *world) {
	for _, limit := range []int64{0, -1, registry.MaxSafeInteger + 1, -1 << 63, 1<<63 - 1} {
		request := w.request(Script{})
		request.Spec.OutputLimitBytes = &limit
		_, err := w.Start(w.ctx, alice(), request)
		w.is.Equal(registry.CodeInvalid, registry.CodeOf(err), "limit %d", limit)
	}
	w.untouched()
}

func goodLimits(w *world) {
	for _, limit := range []int64{1, 64, registry.MaxSafeInteger} {
		request := w.request(Script{})
		request.Spec.OutputLimitBytes = &limit
		started, err := w.Start(w.ctx, alice(), request)
		w.is.NoError(err, "limit %d", limit)
		w.is.Equal(limit, started.Snapshot.OutputLimitBytes)
	}
	w.is.Zero(w.get(w.start(alice(), Script{})).OutputLimitBytes)
}

func prepareRefuses(w *world) {
	refusal := registry.Errorf(registry.CodeInvalid, "no directory %q", "/no/such")
	_, err := w.Start(w.ctx, alice(), w.request(Script{
		Prepare: func(context.Context) error { return refusal },
	}))
	w.is.ErrorIs(err, refusal)
	w.untouched()
}

func prepareBreaks(w *world) {
	_, err := w.Start(w.ctx, alice(), w.request(Script{
		Prepare: func(context.Context) error { return errors.New("boom") },
	}))
	w.refused(err, registry.CodeInternal)
	w.untouched()
}

func cancelledBefore(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := w.Start(ctx, alice(), w.request(Script{}))
	w.is.ErrorIs(err, context.Canceled)
	w.untouched()
}

func cancelledInPrepare(w *world) {
	prepared := w.gate()
	c := begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
		return w.Start(ctx, alice(), w.request(Script{
			Prepare: func(context.Context) error { prepared.pass(); return nil },
		}))
	})
	w.settled()
	c.leave()
	prepared.open()
	_, err := c.result()
	w.is.ErrorIs(err, context.Canceled)
	w.untouched()
}
