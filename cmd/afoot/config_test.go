package main

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/producers/proc"
)

var update = flag.Bool("update", false, "rewrite generated pages")

// home gives the test an empty home and no other place for state.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", "")
	return dir
}

func TestConfigDefaults(t *testing.T) {
	dir := home(t)
	cfg, err := loadConfig()
	require.NoError(t, err)
	require.Equal(t, Address{Network: "tcp", Address: "127.0.0.1:7420"}, cfg.Addr)
	require.Equal(t, filepath.Join(dir, ".local/state/afoot"), cfg.StateDir)
	require.Equal(t, filepath.Join(dir, ".local/state/afoot/secret"), cfg.secretFile())
	require.Equal(t, dir, cfg.Workdir)
	require.Equal(t, []Count{10, 1000, 64, 16}, []Count{cfg.MaxTasksPerOwner, cfg.MaxTasks, cfg.MaxAgentsPerSession, cfg.MaxStreamsPerSession})
	require.Equal(t, []time.Duration{30 * time.Second, 10 * time.Minute, 3 * time.Second, 15 * time.Second},
		[]time.Duration{cfg.WaitDefault, cfg.WaitMax, cfg.KillGrace, cfg.Heartbeat})
	require.Equal(t, Size(64<<20), cfg.OutputMaxBytes)
	require.Equal(t, []any{Size(10 << 30), Count(1000), 24 * time.Hour}, []any{cfg.OutputTotalBytes, cfg.RetainCount, cfg.RetainAge})
	require.Equal(t, Net("auto"), cfg.Net)
	require.Nil(t, cfg.RunAs.User)
	require.Equal(t, slog.LevelInfo, cfg.LogLevel)
	require.Equal(t, LogText, cfg.LogFormat)
	require.NoError(t, cfg.checkListen())
}

func TestConfigStateDirFollowsXDG(t *testing.T) {
	dir := home(t)
	t.Setenv("XDG_STATE_HOME", "/xdg")
	cfg, err := loadConfig()
	require.NoError(t, err)
	require.Equal(t, "/xdg/afoot", cfg.StateDir)

	t.Setenv("XDG_STATE_HOME", "relative")
	cfg, err = loadConfig()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, ".local/state/afoot"), cfg.StateDir)
}

func TestConfigWorkdirWithoutHome(t *testing.T) {
	home(t)
	t.Setenv("HOME", "/no/such/home")
	cfg, err := loadConfig()
	require.NoError(t, err)
	require.Equal(t, "/", cfg.Workdir)
}

func TestConfigWorkdirIsThatOfWhomTasksRunAs(t *testing.T) {
	home(t)
	for user, want := range map[string]string{"0:0": "/root", "3999999999:1": "/"} {
		t.Setenv("AFOOT_RUN_AS", user)
		cfg, err := loadConfig()
		require.NoError(t, err)
		require.Equal(t, want, cfg.Workdir)
	}
}

// A variable without the prefix is somebody else's.
func TestConfigReadsOnlyItsPrefix(t *testing.T) {
	home(t)
	for _, name := range []string{"ADDR", "SESSION", "TOKEN", "HOSTS", "KILL_GRACE"} {
		t.Setenv(name, "10s")
	}
	cfg, err := loadConfig()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7420", cfg.Addr.String())
	require.Empty(t, cfg.Session+cfg.Token)
	require.Empty(t, cfg.Hosts)
	require.Equal(t, 3*time.Second, cfg.KillGrace)
}

func TestConfigGoodValues(t *testing.T) {
	for _, c := range []struct {
		name, value string
		got         func(*Config) any
		want        any
	}{
		{"ADDR", "[::1]:0", func(c *Config) any { return c.Addr.Address }, "[::1]:0"},
		{"ADDR", "unix:/run/a.sock", func(c *Config) any { return c.Addr }, Address{Network: "unix", Address: "/run/a.sock"}},
		{"STATE_DIR", "/s/", func(c *Config) any { return c.StateDir }, "/s"},
		{"OUTPUT_MAX_BYTES", "65536", func(c *Config) any { return c.OutputMaxBytes }, Size(65536)},
		{"OUTPUT_MAX_BYTES", "10MB", func(c *Config) any { return c.OutputMaxBytes }, Size(10_000_000)},
		{"OUTPUT_MAX_BYTES", "1 GiB", func(c *Config) any { return c.OutputMaxBytes }, Size(1 << 30)},
		{"OUTPUT_TOTAL_BYTES", "1GB", func(c *Config) any { return c.OutputTotalBytes }, Size(1_000_000_000)},
		{"RETAIN_COUNT", "5", func(c *Config) any { return c.RetainCount }, Count(5)},
		{"RETAIN_AGE", "168h", func(c *Config) any { return c.RetainAge }, 168 * time.Hour},
		{"KILL_GRACE", "250ms", func(c *Config) any { return c.KillGrace }, 250 * time.Millisecond},
		{"HOSTS", " a.example , ,b.example", func(c *Config) any { return c.Hosts }, []string{"a.example", "b.example"}},
		{"ORIGINS", "https://a.example", func(c *Config) any { return c.Origins }, []string{"https://a.example"}},
		{"MAX_TASKS", "2000", func(c *Config) any { return c.MaxTasks }, Count(2000)},
		{"LOG_LEVEL", "WARN", func(c *Config) any { return c.LogLevel }, slog.LevelWarn},
		{"LOG_FORMAT", "json", func(c *Config) any { return c.LogFormat }, LogJSON},
		{"NET", "auto", func(c *Config) any { return c.Net }, Net("auto")},
		{"NET", "Cgroup", func(c *Config) any { return c.Net }, Net("cgroup")},
		{"RUN_AS", "1000:100", func(c *Config) any { return *c.RunAs.User }, proc.User{UID: 1000, GID: 100}},
		{"RUN_AS", "0:0", func(c *Config) any { return *c.RunAs.User }, proc.User{}},
		{"SESSION", "s", func(c *Config) any { return c.Session }, "s"},
		{"TASK_ID", "bash-1", func(c *Config) any { return c.TaskID }, "bash-1"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			home(t)
			t.Setenv("AFOOT_"+c.name, c.value)
			cfg, err := loadConfig()
			require.NoError(t, err)
			require.Equal(t, c.want, c.got(cfg))
		})
	}
}

func TestConfigBadValuesNameTheVariable(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"ADDR", "", "AFOOT_ADDR"},
		{"ADDR", "localhost", "AFOOT_ADDR"},
		{"ADDR", "127.0.0.1:http", "AFOOT_ADDR"},
		{"ADDR", "127.0.0.1:65536", "AFOOT_ADDR"},
		{"ADDR", "unix:relative", "AFOOT_ADDR"},
		{"MAX_TASKS_PER_OWNER", "0", "AFOOT_MAX_TASKS_PER_OWNER"},
		{"MAX_TASKS", "-1", "AFOOT_MAX_TASKS"},
		{"MAX_TASKS", "1e3", "AFOOT_MAX_TASKS"},
		{"MAX_AGENTS_PER_SESSION", "many", "AFOOT_MAX_AGENTS_PER_SESSION"},
		{"MAX_STREAMS_PER_SESSION", "99999999999", "AFOOT_MAX_STREAMS_PER_SESSION"},
		{"WAIT_DEFAULT", "30", "AFOOT_WAIT_DEFAULT"},
		{"WAIT_DEFAULT", "11m", "AFOOT_WAIT_MAX"},
		{"WAIT_MAX", "0s", "AFOOT_WAIT_MAX"},
		{"KILL_GRACE", "-3s", "AFOOT_KILL_GRACE"},
		{"HEARTBEAT", "soon", "AFOOT_HEARTBEAT"},
		{"WRITE_TIMEOUT", "1us", "AFOOT_WRITE_TIMEOUT"},
		{"RESULT_BYTES", "4194305", "AFOOT_RESULT_BYTES=4194305"},
		{"BASH_TIMEOUT", "-1s", "AFOOT_BASH_TIMEOUT="},
		{"BASH_TIMEOUT", "11m", "AFOOT_BASH_TIMEOUT_MAX"},
		{"BASH_TIMEOUT_MAX", "0s", "AFOOT_BASH_TIMEOUT_MAX="},
		{"WEBHOOK_TIMEOUT", "0s", "AFOOT_WEBHOOK_TIMEOUT"},
		{"OUTPUT_MAX_BYTES", "0", "AFOOT_OUTPUT_MAX_BYTES"},
		{"OUTPUT_MAX_BYTES", "-5", "AFOOT_OUTPUT_MAX_BYTES"},
		{"OUTPUT_MAX_BYTES", "64 potatoes", "AFOOT_OUTPUT_MAX_BYTES"},
		{"OUTPUT_MAX_BYTES", "99EiB", "AFOOT_OUTPUT_MAX_BYTES"},
		{"LOG_LEVEL", "loud", "AFOOT_LOG_LEVEL"},
		{"LOG_FORMAT", "xml", "AFOOT_LOG_FORMAT"},
		{"NET", "", "AFOOT_NET"},
		{"NET", "best", "AFOOT_NET"},
		{"RUN_AS", "", "AFOOT_RUN_AS"},
		{"RUN_AS", "1000", "AFOOT_RUN_AS"},
		{"RUN_AS", "nobody:nogroup", "AFOOT_RUN_AS"},
		{"RUN_AS", "1000:1000:1", "AFOOT_RUN_AS"},
		{"RUN_AS", "1000:-1", "AFOOT_RUN_AS"},
		{"RUN_AS", "4294967295:1", "AFOOT_RUN_AS"},
		{"TLS_CERT", "/c", "AFOOT_TLS_KEY"},
		{"JWKS", "/k", "AFOOT_JWT_ISSUER"},
		{"ENV_FILE", "/no/such/file", "AFOOT_ENV_FILE"},
		{"STATEDIR", "/s", "AFOOT_STATE_DIR"},
		{"MAX_TASK", "1", "AFOOT_MAX_TASKS"},
		{"OUTPUT_BYTES", "1GiB", "unknown variable AFOOT_OUTPUT_BYTES"},
		{"OUTPUT_TOTAL_BYTES", "0", "AFOOT_OUTPUT_TOTAL_BYTES"},
		{"RETAIN_COUNT", "0", "AFOOT_RETAIN_COUNT"},
		{"RETAIN_AGE", "0s", "AFOOT_RETAIN_AGE"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			home(t)
			t.Setenv("AFOOT_"+c.name, c.value)
			_, err := loadConfig()
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestConfigEnvFile(t *testing.T) {
	write := func(t *testing.T, text string) {
		t.Helper()
		path := filepath.Join(home(t), "afoot.env")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		t.Setenv("AFOOT_ENV_FILE", path)
	}
	// What the file sets stays in the environment; register it for removal.
	keep := func(t *testing.T, names ...string) {
		t.Helper()
		for _, name := range names {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Run("environment wins", func(t *testing.T) {
		keep(t, "AFOOT_KILL_GRACE")
		write(t, "# settings\nAFOOT_KILL_GRACE=7s\nAFOOT_HEARTBEAT=\"8s\"\n")
		t.Setenv("AFOOT_HEARTBEAT", "9s")
		cfg, err := loadConfig()
		require.NoError(t, err)
		require.Equal(t, []time.Duration{7 * time.Second, 9 * time.Second}, []time.Duration{cfg.KillGrace, cfg.Heartbeat})
		for _, pair := range cfg.Environ {
			require.NotContains(t, pair, "KILL_GRACE", "the environment of tasks is the daemon's own")
		}
	})
	for name, c := range map[string]struct{ text, says string }{
		"bad value": {"AFOOT_WAIT_MAX=x", "AFOOT_WAIT_MAX"},
		"unknown":   {"AFOOT_WAITMAX=1m", "AFOOT_WAIT_MAX"},
		"foreign":   {"PATH=/bin", "PATH"},
		"no file":   {"=", "AFOOT_ENV_FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			keep(t, "AFOOT_WAIT_MAX")
			write(t, c.text)
			_, err := loadConfig()
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestConfigErrorsHoldNoToken(t *testing.T) {
	home(t)
	t.Setenv("AFOOT_TOKEN", "very-secret")
	t.Setenv("AFOOT_TOKENS", "very-secret")
	_, err := loadConfig()
	require.ErrorContains(t, err, "AFOOT_TOKEN")
	require.NotContains(t, err.Error(), "very-secret")
}

// J3: what can be reached from elsewhere needs keys and names on purpose.
func TestCheckListen(t *testing.T) {
	for _, c := range []struct {
		addr, secret, jwks, hosts string
		says                      string
	}{
		{addr: "127.0.0.1:1"},
		{addr: "127.9.9.9:1"},
		{addr: "[::1]:1"},
		{addr: "localhost:1"},
		{addr: "LOCALHOST:1"},
		{addr: "unix:/run/a.sock"},
		{addr: "0.0.0.0:1", says: "AFOOT_JWT_SECRET_FILE"},
		{addr: ":1", says: "AFOOT_JWT_SECRET_FILE"},
		{addr: "[::]:1", says: "AFOOT_JWT_SECRET_FILE"},
		{addr: "192.0.2.1:1", says: "AFOOT_JWT_SECRET_FILE"},
		{addr: "afoot.example:1", says: "AFOOT_JWT_SECRET_FILE"},
		{addr: "[2001:db8::1]:1", says: "AFOOT_JWT_SECRET_FILE"},
		{addr: "127.1:1", says: "AFOOT_JWT_SECRET_FILE"},
		{addr: "192.0.2.1:1", says: "AFOOT_JWKS"},
		{addr: "0.0.0.0:1", secret: "/s", says: "AFOOT_HOSTS"},
		{addr: "0.0.0.0:1", jwks: "/k", says: "AFOOT_HOSTS"},
		{addr: "0.0.0.0:1", secret: "/s", hosts: "a.example"},
		{addr: "0.0.0.0:1", jwks: "/k", hosts: "a.example"},
	} {
		cfg := &Config{JWTSecretFile: c.secret, JWKS: c.jwks, Hosts: trimmed([]string{c.hosts})}
		require.NoError(t, cfg.Addr.Decode(c.addr))
		err := cfg.checkListen()
		if c.says == "" {
			require.NoError(t, err, c.addr)
		} else {
			require.ErrorContains(t, err, c.says, c.addr)
		}
	}
}

func TestConfigPageIsCurrent(t *testing.T) {
	const path = "../../docs/configuration.md"
	var page strings.Builder
	require.NoError(t, writeConfigMarkdown(&page))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page.String()), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, page.String(), string(got), "run make generate")
}

func TestConfigTableListsEverything(t *testing.T) {
	var table strings.Builder
	require.NoError(t, writeConfigTable(&table))
	for _, name := range configNames(&Config{}) {
		require.Contains(t, table.String(), name)
	}
	require.Contains(t, table.String(), "AFOOT_JWT_SECRET_FILE")
}
