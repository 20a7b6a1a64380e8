package main

import (
	"fmt"
	"os"
	"strings"
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
	cfg := d.cfg()
	afoot := cfg.elsewhere() + shellQuote(self)
	socket := cfg.Addr.Network == "unix"
	curl, place := "curl -s", d.url()
	if socket {
		curl += " --unix-socket " + shellQuote(cfg.Addr.Address)
		place = d.boundAddr()
	}
	if cfg.TLSCert != "" {
		curl += " --cacert " + shellQuote(cfg.TLSCert)
	}
	fmt.Fprintf(a.stdout, "afoot listens on %s\n", place)
	if cfg.secretFile() == "" {
		fmt.Fprintf(a.stdout, "  a token:  none can be made by a command: the secret is in memory alone (%s_JWT_SECRET_FILE names one that is not)\n", envPrefix)
	} else {
		fmt.Fprintf(a.stdout, "  a token:  export TOKEN=$(%s token --session local)\n", afoot)
		fmt.Fprintf(a.stdout, "  a task:   %s -H \"Authorization: Bearer $TOKEN\" --json '{\"kind\":\"bash\",\"command\":\"echo hello\"}' '%s/tasks?wait=true'\n", curl, d.url())
	}
	switch {
	case !link:
		return nil
	case socket:
		fmt.Fprintf(a.stdout, "  the page: no browser opens a socket; %s_ADDR=127.0.0.1:7420 is for one\n", envPrefix)
		return nil
	}
	code, err := d.house.signInCode(defaultSession)
	if err != nil {
		return fmt.Errorf("sign-in link: %w", err)
	}
	fmt.Fprintf(a.stdout, "  the page: %s\n", signInLink(d.url(), code))
	again := ""
	if !cfg.inMemory() {
		again = fmt.Sprintf("; `%s open` prints a new one", afoot)
	}
	fmt.Fprintf(a.stdout, "            works once, for a minute%s\n", again)
	return nil
}

// elsewhere is what commands in another shell have to be told to find daemon and secret;
// nothing where all is as by default.
func (c *Config) elsewhere() string {
	var words strings.Builder
	tell := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&words, "%s_%s=%s ", envPrefix, name, shellQuote(value))
		}
	}
	if c.inMemory() {
		tell("JWT_SECRET_FILE", c.JWTSecretFile)
		tell("JWT_ISSUER", c.JWTIssuer)
		tell("JWT_AUDIENCE", c.JWTAudience)
	} else if dir, err := defaultStateDir(); err != nil || c.StateDir != dir {
		tell("STATE_DIR", c.StateDir) // the rest stands there
	}
	return words.String()
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
