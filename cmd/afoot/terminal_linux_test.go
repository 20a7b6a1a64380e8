package main

import (
	"encoding/base64"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheSecretOfAWebhookIsAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_WEBHOOK_HOSTS=127.0.0.1")
	r.serve()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = master.Close() }()
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer func() { _ = terminal.Close() }()
	_, err = master.WriteString("whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n")
	require.NoError(t, err)
	add := r.command("webhooks", "add", "http://127.0.0.1:9/")
	add.Stdin = terminal
	stdout, stderr, code := r.finish(add)
	require.Zero(t, code, stderr)
	require.NotEmpty(t, stdout)
	require.Contains(t, stderr, "secret (whsec_…): ")
}
