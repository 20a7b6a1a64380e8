package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// doctor runs the command and gives its findings by state.
func (r *rig) doctor(code int, args ...string) map[string][]finding {
	r.t.Helper()
	stdout, stderr, got := r.afoot(append([]string{"doctor", "--json"}, args...)...)
	require.Equal(r.t, code, got, "%s%s", stdout, stderr)
	var said struct{ Findings []finding }
	require.NoError(r.t, json.Unmarshal([]byte(stdout), &said))
	by := map[string][]finding{}
	for _, f := range said.Findings {
		if f.Check == "groups" && !strings.Contains(f.Text, "no control group") {
			continue // another test's daemon
		}
		by[f.State] = append(by[f.State], f)
	}
	return by
}

func saidOf(findings []finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Check+": "+f.Text)
	}
	return strings.Join(all, "\n")
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_NET=subreaper")
	said := r.doctor(exitOK)
	require.Contains(t, saidOf(said[findingNote]), "is not there")
	require.NoDirExists(t, r.state)
	require.NoError(t, os.Mkdir(r.state, 0o700))
	said = r.doctor(exitOK)
	require.Contains(t, saidOf(said[findingOK]), "none ever did here")
	require.NotContains(t, saidOf(said[findingOK]), "the last daemon")

	r.serve()
	r.ok("run", "--", "echo one")
	r.ok("run", "--", "echo two")
	said = r.doctor(exitOK)
	require.Contains(t, saidOf(said[findingOK]), "it runs (process")
	require.Empty(t, said[findingRepaired])
	require.Empty(t, said[findingWrong])

	// Nobody ends them but the doctor; of an earlier run of this test some may be left.
	a, b := fmt.Sprintf("391.%d", r.daemon.Process.Pid), fmt.Sprintf("392.%d", r.daemon.Process.Pid)
	r.ok("run", "-d", "--", fmt.Sprintf("setsid -f sleep %s >/dev/null 2>&1; sleep %s", a, b))
	r.eventually("it is up", func() bool { return len(alive(t, a, b)) == 2 })
	dog := r.watchdogs()[0]
	require.NoError(t, syscall.Kill(dog, syscall.SIGSTOP))
	require.NoError(t, r.daemon.Process.Kill())
	require.NoError(t, syscall.Kill(dog, syscall.SIGKILL))
	require.Error(t, r.ended(r.soon()))
	stale := filepath.Join(r.state, outputName, "e0-1.log")
	require.NoError(t, os.WriteFile(stale, []byte("lost"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(r.state, outputName, "e0-2.log"), nil, 0o600), "made ahead")
	logs, err := filepath.Glob(filepath.Join(r.state, outputName, "*.log"))
	require.NoError(t, err)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if bytes.HasPrefix(text, []byte("one\n")) {
			require.NoError(t, os.Remove(path))
		}
	}
	require.NoError(t, os.Chmod(r.state, 0o755))

	said = r.doctor(exitFailed, "--dry-run")
	wrong := saidOf(said[findingWrong])
	require.Contains(t, wrong, "has mode 0755")
	require.Contains(t, wrong, "1 files belong to no task", "whose output is nowhere else")
	require.Contains(t, wrong, "processes of its tasks live")
	require.Contains(t, wrong, listenName+" was left")
	require.Contains(t, saidOf(said[findingNote]), "the output of bash-1 is lost")
	require.FileExists(t, stale)
	require.Len(t, alive(t, a, b), 2)

	said = r.doctor(exitOK)
	mended := saidOf(said[findingRepaired])
	require.Contains(t, mended, "closed to others")
	require.Contains(t, mended, "files belong to no task that is known: removed")
	require.Contains(t, mended, "nobody is left")
	require.NoFileExists(t, stale)
	require.Empty(t, alive(t, a, b))
	require.Equal(t, os.FileMode(0o700), modeOf(t, r.state))
	require.Empty(t, r.doctor(exitOK)[findingRepaired], "there is nothing more to mend")

	r.serve()
	require.Equal(t, "two\n", r.ok("logs", "bash-2"))
	require.Len(t, r.tasks(), 3)
}

func TestDoctorLeavesADamagedJournalAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	r.ok("run", "--", "echo one")
	r.stop()
	spoilt := bytes.Repeat([]byte("x"), 9000)
	require.NoError(t, os.WriteFile(journalPath(r.state), spoilt, 0o600))
	said := r.doctor(exitFailed)
	require.Contains(t, saidOf(said[findingWrong]), "damaged")
	text, err := os.ReadFile(journalPath(r.state))
	require.NoError(t, err)
	require.Equal(t, spoilt, text)
	logs, err := filepath.Glob(filepath.Join(r.state, outputName, "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, logs, "nor is what may be its")
	stdout, _, code := r.afoot("doctor")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, "wrong     journal")
}
