package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

func (a *app) openCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "open",
		Short: "Print a link that signs a browser in",
		Long: `Prints a link to the daemon's page that signs in for the session. It works once, for a
minute. The daemon has to listen on an address of TCP: no browser opens a socket.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.connect()
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			if r.socket != "" {
				return fmt.Errorf("no browser opens the socket %s, and a link needs a daemon with %s_ADDR=host:port; `curl --unix-socket %s %s/…` calls this one", r.socket, envPrefix, shellQuote(r.socket), r.url)
			}
			code, err := decode[client.AuthCode](r.MakeCode(cmd.Context()))
			if err != nil {
				return err
			}
			link := signInLink(r.url, code.Code)
			if a.json {
				return a.printJSON(map[string]any{"url": link, "expiresAt": code.ExpiresAt})
			}
			if err := a.println(link); err != nil {
				return err
			}
			if isTerminal(a.stdout) {
				fmt.Fprintf(a.stderr, "It works once, until %s.\n", time.UnixMilli(code.ExpiresAt).Format(time.TimeOnly))
			}
			return nil
		},
	}
}

// signInLink carries the code in the fragment, which browsers keep to themselves.
func signInLink(base, code string) string {
	return strings.TrimSuffix(base, "/") + "/#code=" + url.QueryEscape(code)
}
