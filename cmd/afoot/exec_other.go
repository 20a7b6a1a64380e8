//go:build !linux

package main

import (
	"errors"
	"os"
)

// canReplace says whether work can be handed over to another image of this process.
const canReplace = false

func luggageFile() (*os.File, error) { return nil, errors.ErrUnsupported }

func closeAllOnExec() error { return errors.ErrUnsupported }
