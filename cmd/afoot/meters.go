package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"afoot/api/webhook"
)

// meters are the numbers of the rooms below the API, for /metrics beside its own.
type meters struct {
	*prometheus.Registry
	commits prometheus.Histogram
	rows    prometheus.Counter
	failed  prometheus.Counter
	posts   *prometheus.CounterVec
}

func newMeters() *meters {
	m := &meters{
		Registry: prometheus.NewRegistry(),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "afoot_journal_commit_seconds", Help: "Time that transactions of the journal took.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 2, 20), // 10 µs to 5 s
		}),
		rows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "afoot_journal_rows_total", Help: "Changes that the journal has written.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "afoot_journal_failed_commits_total", Help: "Transactions of the journal that were tried and failed.",
		}),
		posts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "afoot_webhook_posts_total", Help: "Posts of notices to webhooks, repeated ones too, by outcome.",
		}, []string{"outcome"}),
	}
	for _, outcome := range webhook.Outcomes() {
		m.posts.WithLabelValues(string(outcome)) // so that it is there before the first
	}
	return m
}

// posted hears of each post to a webhook.
func (m *meters) posted(outcome webhook.Outcome) { m.posts.WithLabelValues(string(outcome)).Inc() }

// committed hears of each transaction, from the journal's own goroutine.
func (m *meters) committed(took time.Duration, rows int, err error) {
	if err != nil {
		m.failed.Inc()
		return
	}
	m.commits.Observe(took.Seconds())
	m.rows.Add(float64(rows))
}

// meter registers what the rooms can be asked.
func (h *house) meter() error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	all := []prometheus.Collector{
		h.meters.posts,
		gauge("afoot_webhook_pending", "Notices that are still to be posted, counted per webhook.", func() float64 { return float64(h.hooks.Pending()) }),
		gauge("afoot_leftover_tasks", "Ended tasks of which processes still live.", func() float64 { return float64(h.bash.Haunted()) }),
		gauge("afoot_output_kept_bytes", "Output that is kept, of all tasks.", func() float64 { return float64(h.store.Total()) }),
	}
	if h.journal != nil {
		all = append(all, h.meters.commits, h.meters.rows, h.meters.failed,
			gauge("afoot_journal_queue", "Changes that wait to be written to the journal.", func() float64 { return float64(h.journal.Stats().Queue) }),
			gauge("afoot_journal_failing", "1 while the journal can't be written, else 0.", func() float64 {
				if h.journal.Stats().InTrouble {
					return 1
				}
				return 0
			}))
	}
	for _, c := range all {
		if err := h.meters.Register(c); err != nil {
			return err
		}
	}
	return nil
}
