//go:build unix && !linux

package output

import "errors"

func mountTmpfs(string, int) error { return errors.ErrUnsupported }

func mountRAM(string) error { return errors.ErrUnsupported }

func unmount(string) error { return nil }
