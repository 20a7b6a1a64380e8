package bash

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"afoot/registry"
)

const (
	maxCommandBytes = 1 << 20
	// maxStringBytes is the most that the kernel takes as one argument or one
	// variable of the environment (MAX_ARG_STRLEN, less its closing NUL).
	maxStringBytes = 131_071
	// maxPathBytes is the most that the kernel takes as a path (PATH_MAX).
	maxPathBytes = 4096
	// minNice and maxNice are the system's bounds. Below 0 needs the right to.
	minNice, maxNice = -20, 19
)

// request is a start request with every default resolved.
type request struct {
	command string
	workdir string
	// env is sorted by name.
	env       []variable
	timeoutMs int64 // 0: none
	// open says that standard input is a pipe, split that standard error has one of
	// its own, stop that leftovers are stopped.
	open, split, stop bool
	nice              int
	// 0: no limit.
	memoryMaxBytes, pidsMax int64
}

type variable struct{ name, value string }

// members is the wire form; raw, so that null and wrong types can be told.
type members struct {
	Command   jsontext.Value `json:"command"`
	Workdir   jsontext.Value `json:"workdir"`
	Env       jsontext.Value `json:"env"`
	TimeoutMs jsontext.Value `json:"timeoutMs"`
	Stdin     jsontext.Value `json:"stdin"`
	Streams   jsontext.Value `json:"streams"`
	Leftovers jsontext.Value `json:"leftovers"`

	Nice           jsontext.Value `json:"nice"`
	MemoryMaxBytes jsontext.Value `json:"memoryMaxBytes"`
	PidsMax        jsontext.Value `json:"pidsMax"`
}

func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, format, args...)
}

// parse reads and checks everything but the file system.
func parse(fields []byte) (request, error) {
	var m members
	if len(fields) > 0 {
		if err := json.Unmarshal(fields, &m, json.RejectUnknownMembers(true)); err != nil {
			return request{}, explain(err)
		}
	}
	var r request
	var err error
	if r.command, err = parseCommand(m.Command); err != nil {
		return request{}, err
	}
	if r.workdir, err = parseWorkdir(m.Workdir); err != nil {
		return request{}, err
	}
	if r.env, err = parseEnv(m.Env); err != nil {
		return request{}, err
	}
	if r.timeoutMs, err = parseInt("timeoutMs", m.TimeoutMs, 1, registry.MaxSafeInteger); err != nil {
		return request{}, err
	}
	if err := r.parseChoices(m); err != nil {
		return request{}, err
	}
	return r, r.parseLimits(m)
}

func (r *request) parseChoices(m members) (err error) {
	if r.open, err = parseChoice("stdin", m.Stdin, "null", "open"); err != nil {
		return err
	}
	if r.split, err = parseChoice("streams", m.Streams, "merged", "split"); err != nil {
		return err
	}
	r.stop, err = parseChoice("leftovers", m.Leftovers, "keep", "stop")
	return err
}

func (r *request) parseLimits(m members) error {
	nice, err := parseInt("nice", m.Nice, minNice, maxNice)
	if err != nil {
		return err
	}
	r.nice = int(nice)
	if r.memoryMaxBytes, err = parseInt("memoryMaxBytes", m.MemoryMaxBytes, 1, registry.MaxSafeInteger); err != nil {
		return err
	}
	r.pidsMax, err = parseInt("pidsMax", m.PidsMax, 1, registry.MaxSafeInteger)
	return err
}

// explain words what is wrong with the JSON itself.
func explain(err error) error {
	var pointer jsontext.Pointer
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		pointer = semantic.JSONPointer
	case errors.As(err, &syntactic):
		pointer = syntactic.JSONPointer
	}
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return invalid("unknown member %.*q", maxShownBytes, pointer.LastToken())
	case errors.Is(err, jsontext.ErrDuplicateName):
		return invalid("member %.*q is given twice", maxShownBytes, pointer.LastToken())
	default:
		return registry.Wrap(registry.CodeInvalid, err, "the request is not a valid JSON object")
	}
}

// resolve makes the directory absolute. One that is written with "." or ".." is
// resolved as the kernel would, so that PWD can name it.
func (r *request) resolve(base string) error {
	if r.workdir == "" {
		r.workdir = base
	} else if !filepath.IsAbs(r.workdir) {
		r.workdir = base + "/" + r.workdir
	}
	if filepath.Clean(r.workdir) != r.workdir {
		resolved, err := filepath.EvalSymlinks(r.workdir)
		if err != nil {
			return invalid("workdir %.*q can't be used: %s", maxPathBytes, r.workdir, reason(err))
		}
		r.workdir = resolved
	}
	return checkDir(r.workdir)
}

// describe is the request for people: of the environment only the names.
func (r *request) describe() (description, error) {
	shown := struct {
		Command        string   `json:"command"`
		Workdir        string   `json:"workdir"`
		Env            []string `json:"env,omitempty"`
		TimeoutMs      int64    `json:"timeoutMs,omitzero"`
		Stdin          string   `json:"stdin"`
		Streams        string   `json:"streams"`
		Leftovers      string   `json:"leftovers"`
		Nice           int      `json:"nice,omitzero"`
		MemoryMaxBytes int64    `json:"memoryMaxBytes,omitzero"`
		PidsMax        int64    `json:"pidsMax,omitzero"`
	}{
		r.command, r.workdir, nil, r.timeoutMs, "null", "merged", "keep",
		r.nice, r.memoryMaxBytes, r.pidsMax,
	}
	if r.open {
		shown.Stdin = "open"
	}
	if r.split {
		shown.Streams = "split"
	}
	if r.stop {
		shown.Leftovers = "stop"
	}
	for _, v := range r.env {
		shown.Env = append(shown.Env, v.name)
	}
	data, err := json.Marshal(shown)
	if err != nil {
		return description{}, fmt.Errorf("describe the request: %w", err)
	}
	return newDescription(data), nil
}
