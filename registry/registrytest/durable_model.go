package registrytest

import "testing"

func durableModel(t *testing.T, factory DurableFactory) {}
