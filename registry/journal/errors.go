package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"afoot/registry"
)

// ErrInUse means that another process has the journal open.
var ErrInUse = errors.New("the journal is in use by another process")

// errClosed is what waits and jobs of a closed journal get.
var errClosed = registry.Errorf(registry.CodeUnavailable, "the journal is closed")

// DamageError means that a file is no whole journal. Nothing was changed.
type DamageError struct {
	Path, Reason string
	Cause        error
	// Log says that only the write-ahead log is damaged: what is before the damage can
	// be had, see [AcceptLoss].
	Log bool
}

// Error says what is wrong and what can be done.
func (e *DamageError) Error() string {
	if e.Log {
		return fmt.Sprintf("the journal %s is damaged: %s; look at it with \"afoot doctor\", put a file made by \"afoot backup\" in its place and "+
			"move the files named like it away, or go on without what is lost by \"afoot doctor --accept-loss\"", e.Path, e.Reason)
	}
	return fmt.Sprintf("the journal %s is damaged: %s; look at it with \"afoot doctor\", put a file made by \"afoot backup\" in its place, "+
		"or move it and the files named like it away to begin with nothing", e.Path, e.Reason)
}

// Unwrap gives the cause.
func (e *DamageError) Unwrap() error { return e.Cause }

func damaged(path string, cause error, format string, args ...any) *DamageError {
	return &DamageError{Path: path, Reason: fmt.Sprintf(format, args...), Cause: cause}
}

// VersionError means that a newer binary made the journal. Nothing was changed.
type VersionError struct {
	Path string
	// File and Binary are the schema version of the file and the newest one that
	// this binary knows.
	File, Binary int
}

// Error says both versions and what can be done.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the journal %s has version %d and this binary knows versions up to %d: use the newer binary, or a backup made before the upgrade",
		e.Path, e.File, e.Binary)
}

// openError sorts out why a database cannot be used.
func openError(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("%w: %s", ErrInUse, path)
	case errors.Is(err, sqlite3.NOTADB):
		return damaged(path, err, "it is not a database")
	case errors.Is(err, sqlite3.CORRUPT):
		return damaged(path, err, "its content contradicts itself")
	}
	return fmt.Errorf("open the journal %s: %w", path, err)
}

// full reports whether err means want of space.
func full(err error) bool {
	return errors.Is(err, sqlite3.FULL) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// storageError is err for callers: in the words of the system, without paths.
func storageError(err error) error {
	reason := err.Error()
	var errno syscall.Errno
	var path *fs.PathError
	switch {
	case errors.As(err, &errno):
		reason = errno.Error()
	case errors.As(err, &path):
		reason = path.Err.Error()
	case full(err):
		reason = syscall.ENOSPC.Error()
	}
	return registry.Wrap(registry.CodeInsufficientStorage, err, "the journal cannot be written: %s", reason)
}
