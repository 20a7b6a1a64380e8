package inmem_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/registry/registrytest"
)

func newService(o registrytest.Options, j registry.Journal) *inmem.Service {
	return inmem.New(inmem.Config{
		MaxTasksPerOwner:    o.MaxTasksPerOwner,
		MaxTasks:            o.MaxTasks,
		MaxAgentsPerSession: o.MaxAgentsPerSession,
		TeardownTimeout:     o.TeardownTimeout,
		RetainCount:         o.RetainCount,
		RetainAge:           o.RetainAge,
		Room:                o.Room,
		Journal:             j,
		Adopt:               o.Adopt,
	})
}

func TestDurable(t *testing.T) {
	registrytest.RunDurable(t, func(_ *testing.T, o registrytest.Options, j registry.Journal) registrytest.Durable {
		return newService(o, j)
	})
}

// TestContractWithJournal: keeping things changes nothing else.
func TestContractWithJournal(t *testing.T) {
	registrytest.Run(t, func(t *testing.T, o registrytest.Options) registry.Service {
		t.Helper()
		s := newService(o, registrytest.NewJournal())
		require.NoError(t, s.Load(context.Background()))
		return s
	})
}

// TestAnEndedTaskIsSmall: a row that is written is not kept.
func TestAnEndedTaskIsSmall(t *testing.T) {
	const tasks = 20_000
	s := inmem.New(inmem.Config{RetainCount: tasks, Journal: forgetful{}})
	require.NoError(t, s.Load(context.Background()))
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	s.AttachController("test", registry.AllOwners())
	s.AttachProducer("instant", instant{})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range tasks {
		_, err := s.Start(context.Background(), registry.Caller{Session: "one"}, registry.StartRequest{Spec: registry.Spec{Kind: "instant"}})
		require.NoError(t, err)
	}
	require.Less(t, (heap()-before)/tasks, uint64(800), "bytes per task, of the 1024 that it may take with its run")
}

// forgetful is a journal that keeps nothing.
type forgetful struct{}

func (forgetful) Load(context.Context) (registry.Memory, error) { return registry.Memory{}, nil }
func (forgetful) Append(...registry.Row) registry.Mark          { return 1 }
func (forgetful) Sync(context.Context, registry.Mark) error     { return nil }
func (forgetful) Check() error                                  { return nil }
