package bash

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// BenchmarkStartAndCollect compares a task of this producer, from its request to
// its output, with the same command by plain os/exec and a pipe, turn by turn in
// one run. The metrics are ratios; 1 is plain os/exec.
func BenchmarkStartAndCollect(b *testing.B) {
	stand := newStand(b)
	for _, c := range []struct{ name, command string }{
		{"true", "true"}, {"echo", "echo hello"}, {"64KiB", "head -c 65536 /dev/zero"},
	} {
		b.Run(c.name, func(b *testing.B) {
			spec := registry.Spec{Kind: Kind, Fields: []byte(`{"command":"` + c.command + `"}`)}
			var ours, plain []time.Duration
			for b.Loop() {
				begun := time.Now()
				run := collectTask(b, stand, spec)
				ours = append(ours, time.Since(begun))
				require.NoError(b, run.Discard())
				begun = time.Now()
				collectPlain(b, stand, c.command)
				plain = append(plain, time.Since(begun))
			}
			slices.Sort(ours)
			slices.Sort(plain)
			at := func(d []time.Duration, percent int) float64 { return float64(d[len(d)*percent/100]) }
			b.ReportMetric(at(ours, 50)/at(plain, 50), "p50-ratio")
			b.ReportMetric(at(ours, 99)/at(plain, 99), "p99-ratio")
			b.ReportMetric(at(plain, 50)/1e3, "plain-p50-µs")
			b.ReportMetric(at(ours, 50)/1e3, "ours-p50-µs")
		})
	}
}

func collectTask(b *testing.B, stand *stand, spec registry.Spec) registry.Run {
	plan, err := stand.Prepare(context.Background(), spec)
	require.NoError(b, err)
	settled := make(chan struct{})
	run, err := plan.Start(context.Background(), registry.Launch{
		ID: "bash-1", Settle: func(registry.Outcome, error) { close(settled) },
	})
	require.NoError(b, err)
	<-settled
	_, err = run.(registry.Stream).Page(0, registry.MaxPageBytes)
	require.NoError(b, err)
	return run
}

func collectPlain(b *testing.B, stand *stand, command string) {
	cmd := exec.Command(stand.shell, "-c", command)
	cmd.Dir, cmd.Env = stand.workdir, os.Environ()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(b, cmd.Run())
}

// BenchmarkSixteenAtOnce compares throughput: sixteen goroutines that each start
// and collect, one after another.
func BenchmarkSixteenAtOnce(b *testing.B) {
	stand := newStand(b)
	spec := registry.Spec{Kind: Kind, Fields: []byte(`{"command":"true"}`)}
	const clients, each = 16, 40
	measure := func(once func()) time.Duration {
		begun := time.Now()
		var work sync.WaitGroup
		for range clients {
			work.Go(func() {
				for range each {
					once()
				}
			})
		}
		work.Wait()
		return time.Since(begun)
	}
	var ours, plain time.Duration
	for b.Loop() {
		ours += measure(func() { require.NoError(b, collectTask(b, stand, spec).Discard()) })
		plain += measure(func() { collectPlain(b, stand, "true") })
	}
	b.ReportMetric(float64(plain)/float64(ours), "throughput-ratio")
	b.ReportMetric(float64(b.N*clients*each)/ours.Seconds(), "tasks/s")
}
