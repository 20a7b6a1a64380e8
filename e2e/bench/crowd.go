package main

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

func crowdSize(o options) int { return o.pick(960, 320) }

// crowd makes one measured step of many calls by 16 clients at once.
func crowd(o options, work func() error) func() error {
	return func() error { return together(crowdSize(o), work) }
}

// together makes n calls by 16 clients at once.
func together(n int, work func() error) error {
	var left atomic.Int64
	left.Store(int64(n))
	var group errgroup.Group
	for range clients {
		group.Go(func() error {
			for left.Add(-1) >= 0 {
				if err := work(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// perSecond words the median throughput of blocks that each hold one step.
func perSecond(size float64, blocks [][]float64) string {
	return fmt.Sprintf("%.0f/s", size/all(blocks, 0.5)*1e9)
}
