package auth

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJ3ListeningBeyondThisMachineNeedsKeysAndHosts(t *testing.T) {
	hosts := []string{"afoot.example"}
	for _, addr := range []string{"127.0.0.1:7420", "127.9.9.9:0", "localhost:7420", "LOCALHOST:7420", "[::1]:7420", "unix:/run/afoot.sock"} {
		require.NoError(t, RequireExplicit(addr, false, nil), addr)
	}
	for _, addr := range []string{"0.0.0.0:7420", ":7420", "[::]:7420", "192.0.2.7:80", "afoot.example:80", "[2001:db8::1]:80", "127.1:80", "[::1%lo]:80"} {
		require.NoError(t, RequireExplicit(addr, true, hosts), addr)

		err := RequireExplicit(addr, false, hosts)
		require.ErrorContains(t, err, addr)
		require.ErrorContains(t, err, "AFOOT_JWT_SECRET_FILE or AFOOT_JWKS")
		require.NotContains(t, err.Error(), "AFOOT_HOSTS")

		err = RequireExplicit(addr, true, nil)
		require.ErrorContains(t, err, "AFOOT_HOSTS")
		require.NotContains(t, err.Error(), "AFOOT_JWKS")

		require.ErrorContains(t, RequireExplicit(addr, false, nil), "and AFOOT_HOSTS")
	}
	for _, addr := range []string{"", "127.0.0.1", "::1:80", "/run/afoot.sock"} {
		require.ErrorContains(t, RequireExplicit(addr, true, hosts), "change AFOOT_ADDR")
	}
}
