package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// row is one promise and what was seen of it.
type row struct {
	name         string
	floor, afoot string // what each side took, in its own unit
	seen         spread
	unit         string
	// target is the bound of the median; with atLeast a lower one. NaN: no promise.
	target  float64
	atLeast bool
}

type table struct{ rows []row }

func (t *table) add(r row) { t.rows = append(t.rows, r) }

// told adds a row that is no promise.
func (t *table) told(name, floor, afoot string, seen spread, unit string) {
	t.add(row{name: name, floor: floor, afoot: afoot, seen: seen, unit: unit, target: math.NaN()})
}

func (r row) verdict() string {
	switch {
	case math.IsNaN(r.target):
		return ""
	case math.IsNaN(r.seen.median):
		return "not measured"
	case r.atLeast && r.seen.median >= r.target, !r.atLeast && r.seen.median <= r.target:
		return "ok"
	default:
		return "MISSED"
	}
}

func (r row) bound() string {
	switch {
	case math.IsNaN(r.target):
		return ""
	case r.atLeast:
		return fmt.Sprintf("≥ %.4g %s", r.target, r.unit)
	default:
		return fmt.Sprintf("≤ %.4g %s", r.target, r.unit)
	}
}

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nwhat\tfloor\tafoot\tmedian\tmiddle half\ttarget\tverdict")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.3g %s\t%.3g – %.3g\t%s\t%s\n",
			r.name, r.floor, r.afoot, r.seen.median, r.unit, r.seen.low, r.seen.high, r.bound(), r.verdict())
	}
	// The table is all there is to say; a closed standard output has no listener.
	_ = w.Flush()
}

// ms words nanoseconds.
func ms(ns float64) string { return fmt.Sprintf("%.2f ms", ns/1e6) }
