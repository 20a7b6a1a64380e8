package sse_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(idleServerEnv); mode != "" {
		serveIdle(mode)
		return
	}
	goleak.VerifyTestMain(m)
}
