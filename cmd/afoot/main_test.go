package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// asCommand makes the test binary behave as afoot, so that tests run real
// processes without building one.
const asCommand = "TEST_AS_AFOOT"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" || len(os.Args) == 2 && os.Args[1] == watchdogName {
		main()
	}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, envPrefix+"_") {
			_ = os.Unsetenv(name)
		}
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
