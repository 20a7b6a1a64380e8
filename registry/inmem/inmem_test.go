package inmem_test

import (
	"testing"

	"go.uber.org/goleak"

	"afoot/registry"
	"afoot/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	registrytest.Run(t, func(_ *testing.T, o registrytest.Options) registry.Service {
		return newService(o, nil)
	})
}
