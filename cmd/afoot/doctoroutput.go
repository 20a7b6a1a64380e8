package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// lostOutputName is where output goes whose task was lost with a part of the journal.
const lostOutputName = "output-lost"

// output holds the captured output against the rows.
func (d *doctor) output(rows map[string]string) {
	const check = "output"
	dir := filepath.Join(d.dir, outputName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err = nil, nil
	}
	if err != nil {
		d.say(check, findingWrong, "%s", oneLine(err))
		return
	}
	if rows == nil {
		if d.running {
			return
		}
		d.say(check, findingNote, "%d files in %s were not held against the journal", len(entries), dir)
		return
	}
	there := make(map[string]bool)
	var stale []string
	held := 0
	for _, entry := range entries {
		base, suffix, _ := strings.Cut(entry.Name(), ".")
		if suffix == "slots" {
			continue // of many logs
		}
		there[base] = true
		if _, known := rows[base]; known {
			held++
		} else if info, err := entry.Info(); err != nil || info.Size() > 0 { // others were made ahead, and the next start removes them
			stale = append(stale, filepath.Join(dir, entry.Name()))
		}
	}
	lost := 0
	for name, task := range rows {
		if !there[name] {
			lost++
			if lost <= 10 {
				d.say(check, findingNote, "the output of %s is lost: its file is gone", task)
			}
		}
	}
	if len(stale) > 0 {
		d.unknown(stale)
	}
	if lost == 0 && len(stale) == 0 {
		d.say(check, findingOK, "%d files of tasks that are known", held)
	}
}

// unknown gives back what no task has: to a place of its own, if the task may be lost.
func (d *doctor) unknown(paths []string) {
	const check = "output"
	wrong := fmt.Sprintf("%d files belong to no task that is known", len(paths))
	if d.accepted {
		aside := filepath.Join(d.dir, lostOutputName)
		slots, _ := filepath.Glob(filepath.Join(d.dir, outputName, "*.slots"))
		d.mend(check, wrong, "moved to "+aside, func() error { return errors.Join(moveAll(paths, aside), nameAll(slots, aside)) })
		return
	}
	d.mend(check, wrong, "removed", func() error {
		var errs []error
		for _, path := range paths {
			errs = append(errs, os.Remove(path))
		}
		return errors.Join(errs...)
	})
}

// moveAll moves files into a directory, where nothing is replaced.
func moveAll(paths []string, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		to := filepath.Join(dir, filepath.Base(path))
		if _, err := os.Lstat(to); err == nil {
			errs = append(errs, fmt.Errorf("%s: %w", to, fs.ErrExist))
			continue
		}
		errs = append(errs, os.Rename(path, to))
	}
	return errors.Join(errs...)
}

// nameAll gives files a second name in a directory: what lies in long logs is noted there.
func nameAll(paths []string, dir string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Link(path, filepath.Join(dir, filepath.Base(path))); !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
