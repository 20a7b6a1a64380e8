package inmem_test

import (
	"testing"

	"go.uber.org/goleak"

	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	registrytest.Run(t, func(_ *testing.T, o registrytest.Options) registry.Service {
		return inmem.New(inmem.Config{
			MaxTasksPerOwner:    o.MaxTasksPerOwner,
			MaxTasks:            o.MaxTasks,
			MaxAgentsPerSession: o.MaxAgentsPerSession,
			TeardownTimeout:     o.TeardownTimeout,
			RetainCount:         o.RetainCount,
			RetainAge:           o.RetainAge,
			Room:                o.Room,
		})
	})
}
