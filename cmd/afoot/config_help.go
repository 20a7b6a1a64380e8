package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kelseyhightower/envconfig"
)

// configNames lists the variables of the struct in its order.
func configNames(cfg *Config) []string {
	var out strings.Builder
	mustUsage(cfg, &out, "{{range .}}{{usage_key .}} {{end}}")
	return strings.Fields(out.String())
}

// writeConfigTable prints the variables for a terminal.
func writeConfigTable(out io.Writer) error {
	tabs := tabwriter.NewWriter(out, 1, 0, 2, ' ', 0)
	mustUsage(&Config{}, tabs, "{{range .}}  {{usage_key .}}\t{{usage_default .}}\t{{usage_description .}}\n{{end}}")
	return tabs.Flush()
}

// writeConfigMarkdown prints docs/configuration.md.
func writeConfigMarkdown(out io.Writer) error {
	const page = `<!-- Made by "make generate" from cmd/afoot/config.go; changes belong there. -->

# Configuration

Afoot reads its configuration from the environment. A variable that begins with
` + "`AFOOT_`" + ` and is not in this table stops the start, and so does a bad value; the
error names the variable. Durations are in Go's form (` + "`500ms`, `30s`, `10m`" + `), sizes
are bytes with or without a unit (` + "`65536`, `64KiB`, `10MB`" + `), lists are separated by
commas.

| variable | default | meaning |
|---|---|---|
{{range .}}| ` + "`{{usage_key .}}`" + ` | {{with usage_default .}}` + "`{{.}}`" + `{{end}} | {{usage_description .}} |
{{end}}`
	var text strings.Builder
	mustUsage(&Config{}, &text, page)
	_, err := io.WriteString(out, text.String())
	return err
}

// mustUsage runs a template of this file over the variables. It can only fail if
// the template is wrong, which a test would show.
func mustUsage(cfg *Config, out io.Writer, template string) {
	if err := envconfig.Usagef(envPrefix, cfg, out, template); err != nil {
		panic(fmt.Sprintf("configuration template: %v", err))
	}
}
