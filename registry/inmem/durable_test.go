package inmem_test

import (
	"context"
	"testing"

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
		s := newService(o, registrytest.NewJournal())
		if err := s.Load(context.Background()); err != nil {
			t.Fatal(err)
		}
		return s
	})
}
