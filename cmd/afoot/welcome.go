package main

import (
	"fmt"
	"os"
	"time"

	"afoot/auth"
)

// How long the token lives that a sign-in link gives.
const linkTokenTTL = 12 * time.Hour

// welcome tells where the daemon is, with a line to paste.
func (a *app) welcome(d *daemon, link bool) error {
	self := "afoot"
	if path, err := os.Executable(); err == nil {
		self = path
	}
	curl := "curl -s"
	switch {
	case d.cfg().Addr.Network == "unix":
		curl += " --unix-socket " + shellQuote(d.cfg().Addr.Address)
	case d.cfg().TLSCert != "":
		curl += " --cacert " + shellQuote(d.cfg().TLSCert)
	}
	place := d.url()
	if d.cfg().Addr.Network == "unix" {
		place = d.boundAddr()
	}
	fmt.Fprintf(a.stdout, "afoot listens on %s\n", place)
	if d.cfg().secretFile() == "" {
		fmt.Fprintf(a.stdout, "  a token:  none can be made by a command: the secret is in memory alone (%s_JWT_SECRET_FILE names one that is not)\n", envPrefix)
	} else {
		fmt.Fprintf(a.stdout, "  a token:  export TOKEN=$(%s token --session local)\n", shellQuote(self))
	}
	fmt.Fprintf(a.stdout, "  a task:   %s -H \"Authorization: Bearer $TOKEN\" --json '{\"kind\":\"bash\",\"command\":\"echo hello\"}' '%s/tasks?wait=true'\n", curl, d.url())
	if !link {
		return nil
	}
	code, err := d.house.signInCode(defaultSession)
	if err != nil {
		return fmt.Errorf("sign-in link: %w", err)
	}
	fmt.Fprintf(a.stdout, "  the page: %s\n", signInLink(d.url(), code))
	fmt.Fprintf(a.stdout, "            works once, for a minute; `%s open` prints a new one\n", shellQuote(self))
	return nil
}

// signInCode makes a single-use code for a session.
func (h *house) signInCode(session string) (string, error) {
	token, _, err := h.authority.Mint(auth.Claims{Session: session, Scopes: auth.TasksRead | auth.TasksWrite}, linkTokenTTL)
	if err != nil {
		return "", err
	}
	principal, err := h.authority.Verify(token)
	if err != nil {
		return "", err
	}
	code, _, err := h.authority.NewCode(principal)
	return code, err
}
