package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A secret that is missing, or open to others, is wrong configuration to whoever needs it.
func TestASecretFileThatIsWrong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(r.home, "secret")
	r.env = append(r.env, "AFOOT_JWT_SECRET_FILE="+path)
	refused := func() {
		t.Helper()
		for _, args := range [][]string{{"serve"}, {"serve", "--check"}, {"token"}} {
			_, stderr, code := r.afoot(args...)
			require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
			require.Contains(t, stderr, path)
		}
	}
	refused() // it is missing
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("s", 40)), 0o644))
	refused() // it is open to others
}
