package main

import (
	"math"
	"slices"
	"time"
)

// quantile gives the q-th part of values, which it sorts.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	at := q * float64(len(values)-1)
	low := int(at)
	if low+1 >= len(values) {
		return values[low]
	}
	return values[low] + (at-float64(low))*(values[low+1]-values[low])
}

// spread is a median with the middle half of what was seen.
type spread struct {
	median, low, high float64
}

func spreadOf(values []float64) spread {
	return spread{quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)}
}

// constant is a value that was taken once.
func constant(v float64) spread { return spread{v, v, v} }

// pairs holds what floor and daemon took, block by block, in turns.
type pairs struct {
	floor, afoot [][]float64
}

// ratio compares the q-th part of each block with its neighbour's.
func (p pairs) ratio(q float64) spread {
	ratios := make([]float64, len(p.floor))
	for i := range ratios {
		ratios[i] = quantile(p.afoot[i], q) / quantile(p.floor[i], q)
	}
	return spreadOf(ratios)
}

// gap is what the daemon takes beyond the floor at the q-th part of each block.
func (p pairs) gap(q float64) spread {
	gaps := make([]float64, len(p.floor))
	for i := range gaps {
		gaps[i] = quantile(p.afoot[i], q) - quantile(p.floor[i], q)
	}
	return spreadOf(gaps)
}

// tail compares the q-th part of large groups of blocks: a block alone is too small
// for a tail.
func (p pairs) tail(q float64) spread { return p.grouped().ratio(q) }

// grouped joins the blocks to ten large groups.
func (p pairs) grouped() pairs {
	const groups = 10
	size := max(1, len(p.floor)/groups)
	var grouped pairs
	for i := 0; i+size <= len(p.floor); i += size {
		grouped.floor = append(grouped.floor, slices.Concat(p.floor[i:i+size]...))
		grouped.afoot = append(grouped.afoot, slices.Concat(p.afoot[i:i+size]...))
	}
	return grouped
}

// times multiplies a spread, to give it another unit.
func (s spread) times(f float64) spread { return spread{s.median * f, s.low * f, s.high * f} }

func all(blocks [][]float64, q float64) float64 {
	return quantile(slices.Concat(blocks...), q)
}

// inTurns measures floor and daemon alternately, so that noise meets both; each
// block's order is the other way round than that of the block before.
func inTurns(blocks, size int, floor, afoot func() error) (pairs, error) {
	var p pairs
	block := func(work func() error, into *[][]float64) error {
		took := make([]float64, size)
		for i := range took {
			began := time.Now()
			if err := work(); err != nil {
				return err
			}
			took[i] = float64(time.Since(began))
		}
		*into = append(*into, took)
		return nil
	}
	for i := range blocks + 1 {
		steps := []func() error{
			func() error { return block(floor, &p.floor) },
			func() error { return block(afoot, &p.afoot) },
		}
		if i%2 == 1 {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return p, err
			}
		}
		if i == 0 { // the first block only warms up
			p = pairs{}
		}
	}
	return p, nil
}
