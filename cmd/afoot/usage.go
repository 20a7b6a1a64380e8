package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// wordUsage has the whole tree say in one line what is wrong with a command line, and
// where its help is.
func wordUsage(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return seeHelp(cmd, withUnit(err)) })
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				found, rest, err := cmd.Root().Find(args)
				if err == nil && len(rest) > 0 {
					err = unknownCommand(found, rest[0])
				}
				return err
			}
			continue
		case "completion":
			group(cmd)
		}
		nameArguments(cmd)
	}
	nameArguments(root)
}

// nameArguments has a command name the argument that is missing or too much, where cobra
// counts them.
func nameArguments(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		if below.Name() != "help" {
			nameArguments(below)
		}
	}
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}
	names := slices.DeleteFunc(strings.Fields(cmd.Use)[1:], func(word string) bool { return word == "[flags]" || word == "[--]" })
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case check(cmd, args) == nil:
			return nil
		case cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		case len(args) > len(names):
			return seeHelp(cmd, fmt.Errorf("%q is an argument too many", args[len(names)]))
		default:
			return seeHelp(cmd, fmt.Errorf("%s is missing", strings.TrimSuffix(names[len(args)], "…")))
		}
	}
}

// unknownCommand names the nearest that there is.
func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return usageErrorf("%s: did you mean %s?", text, strings.Join(near, " or "))
	}
	return seeHelp(cmd, fmt.Errorf("%s", text))
}

func seeHelp(cmd *cobra.Command, err error) error {
	return usageErrorf("%w: see `%s --help`", err, cmd.CommandPath())
}

// withUnit says what a duration looks like, where one is wrong.
func withUnit(err error) error {
	if text := err.Error(); strings.Contains(text, "time: ") && strings.Contains(text, "duration") {
		return fmt.Errorf("%w (3s is one)", err)
	}
	return err
}

// choice is a flag that takes one of a few words.
type choice struct {
	value *string
	of    []string
}

// Set implements [pflag.Value].
func (c choice) Set(value string) error {
	if !slices.Contains(c.of, value) {
		return fmt.Errorf("none of %s", strings.Join(c.of, ", "))
	}
	*c.value = value
	return nil
}

// Type implements [pflag.Value].
func (c choice) Type() string { return "string" }

// String implements [pflag.Value].
func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// choose adds a flag that takes one of a few words, and completes them.
func choose(cmd *cobra.Command, value *string, name, usage string, of ...string) {
	cmd.Flags().Var(choice{value, of}, name, usage)
	complete(cmd, name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp))
}
