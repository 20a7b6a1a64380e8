package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"afoot/registry"
)

// Definition is what a model and its client learn of a tool. It is shared: nobody
// changes it.
type Definition struct {
	Name        string
	Title       string
	Description string
	// Input and Output are schemas of objects: of the arguments, and of [Answer.Value].
	Input, Output *jsonschema.Schema
	// What a client may show or ask before a call.
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Definitions gives the tools of a caller: those that only look, and with writes the
// others too.
func (s *Set) Definitions(writes bool) []Definition {
	var visible []Definition
	for _, d := range s.definitions {
		if writes || d.ReadOnly {
			visible = append(visible, d)
		}
	}
	return visible
}

// define makes the definitions.
func define(background bool) ([]Definition, error) {
	command := Definition{
		Name:  NameBash,
		Title: "Run a command",
		Description: "Runs a command with bash and gives what it printed, with its exit code if that is not 0. " +
			"Standard input is empty and there is no terminal.",
		Destructive: true,
		OpenWorld:   true,
	}
	var err error
	if background {
		command.Description += " With run_in_background it gives a task id at once instead, and with yield_ms only if the command takes longer: " +
			"then go on with other work, you are told when the task ends. Use task_output to read what it prints."
		err = schemas[bashArguments, Bash](&command)
	} else {
		err = schemas[foregroundArguments, Bash](&command)
	}
	if err != nil {
		return nil, err
	}
	output := Definition{
		Name:  NameOutput,
		Title: "Read a task's output",
		Description: "Gives what a background task has printed since you last read it, and its status. " +
			"It does not wait unless wait is true: then it gives back when the task has ended or timeout_ms is over, which stops nothing.",
	}
	if err := schemas[outputArguments, Output](&output); err != nil {
		return nil, err
	}
	list := Definition{
		Name:        NameList,
		Title:       "List tasks",
		Description: "Lists your background tasks, running and ended, one line each.",
		ReadOnly:    true,
		Idempotent:  true,
	}
	if err := schemas[listArguments, List](&list); err != nil {
		return nil, err
	}
	kill := Definition{
		Name:  NameKill,
		Title: "Stop a task",
		Description: "Stops a background task with all its processes. What it printed can still be read with task_output. " +
			"Stopping a task that has ended changes nothing.",
		Destructive: true,
		Idempotent:  true,
	}
	if err := schemas[killArguments, Kill](&kill); err != nil {
		return nil, err
	}
	return []Definition{command, output, list, kill}, nil
}

// schemas makes the schemas of a tool from the types of its arguments and its value.
func schemas[In, Out any](d *Definition) error {
	opts := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[millis]():               {Type: "integer", Minimum: new(1.0)},
		reflect.TypeFor[json.RawMessage]():      {Type: "object"},
		reflect.TypeFor[registry.Status]():      words(registry.StatusRunning, registry.StatusStopping, registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed),
		reflect.TypeFor[registry.KillOutcome](): words(registry.KillRequested, registry.KillAlreadyFinished),
		reflect.TypeFor[BashKind]():             words(BashForeground, BashBackground),
	}}
	var err error
	if d.Input, err = jsonschema.For[In](opts); err != nil {
		return fmt.Errorf("arguments of %s: %w", d.Name, err)
	}
	if d.Output, err = jsonschema.For[Out](opts); err != nil {
		return fmt.Errorf("value of %s: %w", d.Name, err)
	}
	if d.Input.Properties == nil { // some clients miss it where there is nothing to say
		d.Input.Properties = map[string]*jsonschema.Schema{}
	}
	notNull(d.Input)
	notNull(d.Output)
	return nil
}

// words is the schema of a string that is one of a few.
func words[T ~string](all ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range all {
		s.Enum = append(s.Enum, string(word))
	}
	return s
}

// notNull takes null out of the types: what is absent is left out, and a list that has
// nothing is empty.
func notNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(rest) == 1 {
		s.Type, s.Types = rest[0], nil
	}
	for _, property := range s.Properties {
		notNull(property)
	}
	notNull(s.Items)
}
