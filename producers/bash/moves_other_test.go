//go:build unix && !linux

package bash

const asMover = "BASH_TEST_AS_MOVER"

func move(string) int { return 0 }
