package journal

import (
	"fmt"
	"path/filepath"

	"afoot/registry"
)

// Peek reads the rows without changing or locking anything. It is for a journal that
// nobody has open: of one that is written meanwhile it may read what never was. The
// errors are those of [Inspect]; a journal of an older version is one, too.
func Peek(path string) (m registry.Memory, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return m, err
	}
	if err := wholeLog(path); err != nil {
		return m, err
	}
	c, err := look(path, false)
	if err != nil {
		return m, openError(path, err)
	}
	defer c.disk.close()
	defer c.drop()
	version, err := c.identify(path, schema())
	if err != nil {
		return m, err
	}
	if known := len(schema()); version != known {
		return m, fmt.Errorf("the journal %s has version %d, and the next start makes it %d", path, version, known)
	}
	m, err = c.memory()
	return m, openError(path, err)
}
