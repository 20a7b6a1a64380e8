package auth

import (
	"fmt"
	"net"
	"strings"
)

// RequireExplicit refuses to listen beyond this machine with a key that was made
// by itself or without a list of hosts. addr is host:port or unix:/path;
// explicitKey says that a secret file or a JWKS was configured by name.
func RequireExplicit(addr string, explicitKey bool, hosts []string) error {
	if strings.HasPrefix(addr, "unix:") {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("the address %q is neither host:port nor unix:/path: change AFOOT_ADDR", addr)
	}
	if name, ok := listedHost(host); ok && isLoopback(name) {
		return nil
	}
	var missing []string
	if !explicitKey {
		missing = append(missing, "AFOOT_JWT_SECRET_FILE or AFOOT_JWKS (whose tokens are good)")
	}
	if len(hosts) == 0 {
		missing = append(missing, "AFOOT_HOSTS (the names that clients use)")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the address %q can be reached from other machines: set %s, or listen on a loopback address", addr, strings.Join(missing, " and "))
}
