package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var nextUser atomic.Int32

// someone gives a user that owns nothing on this machine and has no process.
func someone() int { return 64000 + int(nextUser.Add(1)) }

// openTo makes the way to the daemon's directories passable for everybody, and puts
// the binary where anybody can run it. Who owns what does not change.
func (d *daemon) openTo(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can run processes as somebody else")
	}
	root := filepath.Dir(d.work)
	for _, dir := range []string{root, filepath.Dir(root)} {
		require.NoError(t, os.Chmod(dir, 0o711))
	}
	to := filepath.Join(root, "afoot")
	copyBinary(t, to)
	require.NoError(t, os.Chmod(to, 0o755))
	d.argv = []string{to, "serve"}
}

// runBy makes the daemon another user's, with everything that it needs.
func (d *daemon) runBy(t *testing.T, uid int) {
	t.Helper()
	d.openTo(t)
	root := filepath.Dir(d.work)
	for _, path := range []string{root, d.work, d.dir, filepath.Join(root, "secret")} {
		require.NoError(t, os.Chown(path, uid, uid))
	}
	log, err := os.OpenFile(d.logPath, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	id := strconv.Itoa(uid)
	d.argv = append([]string{"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups", "--inh-caps=-all"}, d.argv...)
}
