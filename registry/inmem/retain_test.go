package inmem_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
	"afoot/registry/inmem"
)

// instant is work that has ended before it has begun.
type instant struct{}

func (instant) Prepare(context.Context, registry.Spec) (registry.Plan, error) { return instant{}, nil }
func (instant) Label() string                                                 { return "instant" }
func (instant) Cancel(string) error                                           { return registry.ErrEnded }
func (instant) Request() (json.RawMessage, error)                             { return nil, nil }
func (instant) Discard() error                                                { return nil }

func (instant) Handle() (json.RawMessage, error) {
	return json.RawMessage(`{"log":"0123456789abcdef","request":{"command":"make","workdir":"/src"}}`), nil
}

func (instant) Start(_ context.Context, l registry.Launch) (registry.Run, error) {
	l.Settle(registry.Outcome{Status: registry.StatusCompleted, Detail: "exit code: 0", Result: json.RawMessage(`{"exitCode":0}`)}, nil)
	return instant{}, nil
}

// BenchmarkStartFull is a start of an owner that has all it may keep: each one lets
// the oldest go. The cost must not grow with what is kept.
func BenchmarkStartFull(b *testing.B) {
	for _, kept := range []int{1_000, 100_000} {
		for _, reported := range []bool{false, true} {
			b.Run(map[bool]string{false: "unread", true: "read"}[reported]+" of "+map[int]string{1_000: "1000", 100_000: "100000"}[kept], func(b *testing.B) {
				s := inmem.New(inmem.Config{RetainCount: kept})
				b.Cleanup(func() { require.NoError(b, s.Close(context.Background())) })
				s.AttachController("bench", registry.AllOwners())
				s.AttachProducer("instant", instant{})
				start := func() {
					got, err := s.Start(context.Background(), registry.Caller{Session: "one"}, registry.StartRequest{Spec: registry.Spec{Kind: "instant"}})
					require.NoError(b, err)
					if reported {
						d, err := s.Read(context.Background(), registry.Caller{Session: "one"}, got.Snapshot.ID, registry.ReadOptions{})
						require.NoError(b, err)
						require.NoError(b, d.Confirm())
					}
				}
				for range kept {
					start()
				}
				for b.Loop() {
					start()
				}
			})
		}
	}
}
