package output

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Sweep removes what earlier stores left in the directory and [Store.Reopen] was not
// asked for: logs that nobody was told of, and files that were made ahead. It is called
// once, after the last Reopen; logs may be made meanwhile. Names that are not a
// store's are left alone, and told of in the log. Removed counts those that held output.
func (s *Store) Sweep() (removed int, err error) {
	s.eras.mu.Lock()
	kept := s.eras.kept
	s.eras.kept, s.eras.swept = nil, true
	for _, e := range s.eras.byName {
		e.noted = nil
	}
	s.eras.mu.Unlock()
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return 0, fmt.Errorf("output directory: %w", err)
	}
	used := make(map[string]struct{}) // by prefix
	for name := range kept {
		prefix, _, _ := strings.Cut(name, "-")
		used[prefix+"-"] = struct{}{}
	}
	var errs []error
	for _, entry := range entries {
		name := entry.Name()
		base, suffix, ours := split(name)
		switch {
		case !ours:
			s.logger.Warn("a strange file is in the output directory", "file", name)
			continue
		case strings.HasPrefix(name, s.era.prefix):
			continue
		case suffix == slotsSuffix:
			if _, ok := used[base]; ok {
				continue
			}
		default:
			if _, ok := kept[base]; ok {
				continue
			}
		}
		info, statErr := entry.Info()
		if err := s.remove(name); err != nil {
			errs = append(errs, err)
			continue
		}
		if suffix == logSuffix && statErr == nil && info.Size() > 0 {
			removed++
		}
	}
	return removed, errors.Join(errs...)
}

// split tells what a file is; the base of a log's is as in its handle, that of slots is
// the prefix of their era.
func split(name string) (base, suffix string, ours bool) {
	for _, suffix := range []string{logSuffix, asideSuffix, slotsSuffix} {
		if base, ok := strings.CutSuffix(name, suffix); ok && strings.Contains(base, "-") {
			return base, suffix, true
		}
	}
	return "", "", false
}
