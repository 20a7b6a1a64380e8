package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

// version is set by the linker; builds without it say what the module knows.
var version string

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the version",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{noConfig: "yes"},
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.printJSON(buildVersion())
			}
			return a.println(versionText())
		},
	}
}

// versionText is one line for people.
func versionText() string {
	v := buildVersion()
	text := "afoot " + v.Version
	if v.Commit != "" {
		text += " (" + v.Commit + ", " + v.Date + ")"
	}
	return text + ", " + v.Go
}

// buildVersion says what this binary was built from.
func buildVersion() client.Version {
	v := client.Version{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Commit = setting.Value
		case "vcs.time":
			v.Date = setting.Value
		}
	}
	return v
}
