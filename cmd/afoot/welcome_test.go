package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pasted runs what the welcome gives to paste, in a shell that knows nothing of the daemon.
func (r *rig) pasted(name string) string {
	r.t.Helper()
	line := regexp.MustCompile(`(?m)^  ` + name + `: +(.*)$`).FindStringSubmatch(r.out.String())
	require.NotNil(r.t, line, r.out.String())
	cmd := exec.Command("bash", "-c", line[1]+"; echo $TOKEN")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, asCommand + "=1"}
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, string(out))
	return strings.TrimSpace(string(out))
}

func TestWelcomeCanBePasted(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	secret := filepath.Join(home, "my secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("s", 40)), 0o600))
	for name, env := range map[string][]string{
		"another directory": {"AFOOT_STATE_DIR=" + filepath.Join(home, "it's here")},
		"another secret":    {"AFOOT_STATE_DIR=" + filepath.Join(home, "state"), "AFOOT_JWT_SECRET_FILE=" + secret},
		"in memory":         {"AFOOT_STATE_DIR=memory:", "AFOOT_JWT_SECRET_FILE=" + secret},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, env...)
			r.serve("--link")
			r.eventually("the link is printed", func() bool { return strings.Contains(r.out.String(), "works once") })
			token := r.pasted("a token")
			addr := regexp.MustCompile(`listens on http://(\S+)`).FindStringSubmatch(r.out.String())[1]
			far := newRig(t, "AFOOT_TOKEN="+token)
			require.Equal(t, "x\n", far.ok("run", "--addr", addr, "--", "echo x"))
			require.Equal(t, name != "in memory", strings.Contains(r.out.String(), "prints a new one"))

			_, stderr, code := far.afoot("ls", "--addr", "https://"+addr)
			require.Equal(t, exitUsage, code)
			require.Contains(t, stderr, "http://")
		})
	}
}

func TestWelcomePromisesNothingInMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_STATE_DIR=memory:")
	r.serve("--link")
	r.eventually("the link is printed", func() bool { return strings.Contains(r.out.String(), "works once") })
	require.NotContains(t, r.out.String(), "TOKEN\"", "none can be made")
	require.NotContains(t, r.out.String(), " open`")
}

func TestNoBrowserOpensASocket(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = append(r.env, "AFOOT_ADDR=unix:"+filepath.Join(r.home, "s"))
	r.serve("--link")
	r.eventually("all is printed", func() bool { return strings.Contains(r.out.String(), "the page:") })
	require.NotContains(t, r.out.String(), "#code=")
	stdout, stderr, code := r.afoot("open")
	require.Equal(t, exitFailed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "curl --unix-socket "+filepath.Join(r.home, "s"))
}

func TestPlainCallOfATLSDaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: cert}, "key": {Type: "PRIVATE KEY", Bytes: der}} {
		require.NoError(t, os.WriteFile(filepath.Join(r.home, name), pem.EncodeToMemory(block), 0o600))
	}
	r.env = append(r.env, "AFOOT_TLS_CERT="+filepath.Join(r.home, "cert"), "AFOOT_TLS_KEY="+filepath.Join(r.home, "key"))
	r.serve()
	info, err := readListenInfo(r.state)
	require.NoError(t, err)
	far := newRig(t, "AFOOT_TOKEN=x")
	for _, args := range [][]string{{"ls"}, {"events"}} {
		_, stderr, code := far.afoot(append(args, "--addr", info.Addr)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "https://")
	}
}
