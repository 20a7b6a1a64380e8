package api

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"afoot/registry"
)

// metrics are what the daemon counts. All names begin with afoot_.
type metrics struct {
	handler  http.Handler
	waits    atomic.Int64
	started  prometheus.Histogram
	settling prometheus.Histogram
	output   prometheus.Counter
	dropped  prometheus.Counter
	lost     prometheus.Counter
	refusals *prometheus.CounterVec
	evicts   *prometheus.CounterVec
}

// newMetrics registers everything in reg, or in a registry of its own.
func newMetrics(reg *prometheus.Registry, counts func() map[registry.Kind]map[registry.Status]int, streams, sessions func() int) (*metrics, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	// From a tenth of a millisecond to about 3 seconds.
	buckets := prometheus.ExponentialBuckets(0.0001, 2, 16)
	m := &metrics{
		handler: promhttp.HandlerFor(reg, promhttp.HandlerOpts{DisableCompression: true}),
		started: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "afoot_start_seconds", Help: "Time from a start request to its published task.", Buckets: buckets,
		}),
		settling: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "afoot_settle_seconds", Help: "Time from the end of a task until its observers hear of it.", Buckets: buckets,
		}),
		output: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "afoot_output_bytes_total", Help: "Raw bytes captured from tasks that have ended.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "afoot_output_dropped_bytes_total", Help: "Raw bytes of tasks that have ended which were not kept until then.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "afoot_recovered_tasks_total", Help: "Tasks that were found live at the start, because the daemon before had ended without stopping them.",
		}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "afoot_refusals_total", Help: "Requests that were refused, by code.",
		}, []string{"code"}),
		evicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "afoot_evictions_total", Help: "Ended tasks that gave way to others or to their age, by whether they were reported.",
		}, []string{"reported"}),
	}
	all := []prometheus.Collector{
		m.started, m.settling, m.output, m.dropped, m.lost, m.refusals, m.evicts,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "afoot_waits", Help: "Requests that wait for a task now.",
		}, func() float64 { return float64(m.waits.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "afoot_streams", Help: "Open event streams.",
		}, func() float64 { return float64(streams()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "afoot_mcp_sessions", Help: "Sessions of the Model Context Protocol.",
		}, func() float64 { return float64(sessions()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	if counts != nil {
		all = append(all, taskCounts{
			counts: counts,
			desc:   prometheus.NewDesc("afoot_tasks", "Records of tasks, by kind and status.", []string{"kind", "status"}, nil),
		})
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) refused(code registry.Code) { m.refusals.WithLabelValues(string(code)).Inc() }

func (m *metrics) evicted(s registry.Snapshot) {
	m.evicts.WithLabelValues(strconv.FormatBool(s.Reported)).Inc()
}

// settled hears of every end, before it is announced.
func (m *metrics) settled(s registry.Snapshot) {
	m.output.Add(float64(s.OutputBytes))
	m.dropped.Add(float64(s.DroppedBytes))
	if s.Detail == registry.DetailLost {
		m.lost.Inc()
		return // it did not end now
	}
	m.settling.Observe(max(time.Since(s.FinishedAt), 0).Seconds())
}

// taskCounts is afoot_tasks, counted when it is asked for.
type taskCounts struct {
	counts func() map[registry.Kind]map[registry.Status]int
	desc   *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (t taskCounts) Describe(ch chan<- *prometheus.Desc) { ch <- t.desc }

// Collect implements [prometheus.Collector].
func (t taskCounts) Collect(ch chan<- prometheus.Metric) {
	for kind, by := range t.counts() {
		for status, n := range by {
			ch <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(n), string(kind), string(status))
		}
	}
}
