package bash

import (
	"slices"
	"strings"

	"afoot/registry"
)

// ownPrefix begins the names that are the daemon's own.
const ownPrefix = "AFOOT_"

// secretWords are parts of names that look like credentials, in upper case.
func secretWords() []string {
	return []string{"KEY", "SECRET", "TOKEN", "PASSWORD", "CREDENTIAL"}
}

// plainTerminal tells programs that nobody watches and nobody answers.
func plainTerminal() []variable {
	return []variable{
		{"NO_COLOR", "1"},
		{"TERM", "dumb"},
		{"PAGER", "cat"},
		{"GIT_PAGER", "cat"},
		{"GIT_TERMINAL_PROMPT", "0"},
	}
}

// environ is a scrubbed environment without PWD, each name once.
type environ []string

// scrub takes what children may see of the daemon's environment.
func scrub(env []string) environ {
	kept := make(environ, 0, len(env)+len(plainTerminal()))
	for _, entry := range env {
		name, _, ok := strings.Cut(entry, "=")
		if ok && name != "" && name != "PWD" && !strings.HasPrefix(name, ownPrefix) && !secret(name) {
			kept = kept.set(name, entry)
		}
	}
	for _, v := range plainTerminal() {
		kept = kept.set(v.name, v.name+"="+v.value)
	}
	return slices.Clip(kept)
}

func secret(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(secretWords(), func(word string) bool { return strings.Contains(name, word) })
}

// set replaces the entry of a name, or appends it.
func (e environ) set(name, entry string) environ {
	for i, old := range e {
		if strings.HasPrefix(old, name) && old[len(name)] == '=' {
			e[i] = entry
			return e
		}
	}
	return append(e, entry)
}

// with gives the environment of one command, with more variables from where it is
// started. The caller's variables win.
func (e environ) with(r *request, launch registry.Launch, more []string) []string {
	env := make(environ, 0, len(e)+3+len(more)+len(r.env))
	env = append(env, e...)
	for _, entry := range more {
		name, _, _ := strings.Cut(entry, "=")
		env = env.set(name, entry)
	}
	env = append(env, "PWD="+r.workdir, ownPrefix+"TASK_ID="+string(launch.ID))
	if launch.Owner.Session != "" {
		env = append(env, ownPrefix+"SESSION="+launch.Owner.Session)
	}
	if len(r.env) == 0 {
		return env
	}
	given := make(map[string]struct{}, len(r.env))
	for _, v := range r.env {
		given[v.name] = struct{}{}
	}
	env = slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := given[name]
		return replaced
	})
	for _, v := range r.env {
		env = append(env, v.name+"="+v.value)
	}
	return env
}
