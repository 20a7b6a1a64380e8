package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/joho/godotenv"
	"github.com/kelseyhightower/envconfig"
)

// envPrefix begins the name of every variable that is Afoot's.
const envPrefix = "AFOOT"

// Config is everything that the environment says. The words of the tags are what
// `afoot serve --help` and docs/configuration.md print. Names are built from the
// field names on purpose: a name given by a tag would also be read without the
// prefix.
type Config struct {
	Addr     Address `split_words:"true" default:"127.0.0.1:7420" desc:"where the daemon listens: host:port, or unix:/path. Anything but loopback or a socket needs explicit keys and AFOOT_HOSTS"`
	StateDir string  `split_words:"true" desc:"directory of journal, secret, lock and captured output, made with mode 0700; memory: keeps nothing beyond the daemon's end. Default: $XDG_STATE_HOME/afoot, else ~/.local/state/afoot"`
	Sync     Sync    `split_words:"true" default:"normal" desc:"what an answer waits for: normal, until the end of the daemon can't undo it; full, until the end of the machine can't"`
	Workdir  string  `split_words:"true" desc:"where commands run that name no workdir. Default: the home directory of whom tasks run as"`

	Net   Net   `split_words:"true" default:"auto" desc:"how the processes of a task are found when it is stopped: cgroup, subreaper or group; auto takes the first of them that works here"`
	RunAs RunAs `split_words:"true" desc:"user and group that tasks run as, by number, such as 1000:1000; needs a daemon that runs as root. Default: the daemon's own user"`

	JWTSecretFile string   `split_words:"true" desc:"file with the HS256 secret, mode 0600, at least 32 bytes. Default: secret in the state directory, made on the first start"`
	JWKS          string   `split_words:"true" desc:"file or URL of a key set for RS256, ES256 and EdDSA tokens; needs issuer and audience"`
	JWTIssuer     string   `split_words:"true" desc:"the iss that tokens must carry"`
	JWTAudience   string   `split_words:"true" desc:"the aud that tokens must carry"`
	Hosts         []string `split_words:"true" desc:"names besides loopback that a request's Host may have, separated by commas"`
	Origins       []string `split_words:"true" desc:"web origins besides the daemon's own that may call it from a browser, separated by commas"`
	TLSCert       string   `split_words:"true" desc:"file with the certificate chain (PEM); turns TLS on together with AFOOT_TLS_KEY"`
	TLSKey        string   `split_words:"true" desc:"file with the private key (PEM)"`

	MaxTasksPerOwner     Count `split_words:"true" default:"10" desc:"running tasks that one agent may have at a time; unowned work shares one such bucket"`
	MaxTasks             Count `split_words:"true" default:"1000" desc:"running tasks in the daemon"`
	MaxAgentsPerSession  Count `split_words:"true" default:"64" desc:"live agents in one session"`
	MaxStreamsPerSession Count `split_words:"true" default:"16" desc:"event streams that one session may hold open"`

	MaxMCPSessions      Count `split_words:"true" default:"16" desc:"MCP sessions that one session may have; a further one ends the one that was silent longest"`
	MaxMCPSubscriptions Count `split_words:"true" default:"1000" desc:"resources that one MCP session may subscribe to"`

	WaitDefault         time.Duration `split_words:"true" default:"30s" desc:"how long a wait lasts that names no time"`
	WaitMax             time.Duration `split_words:"true" default:"10m" desc:"the longest wait; longer ones are cut to it"`
	KillGrace           time.Duration `split_words:"true" default:"3s" desc:"time between SIGTERM and SIGKILL when work is stopped"`
	OutputMaxBytes      Size          `split_words:"true" default:"64MiB" desc:"output kept per task; beyond it the oldest bytes go"`
	OutputTotalBytes    Size          `split_words:"true" default:"10GiB" desc:"output kept of all tasks; beyond it ended tasks that were read go, oldest first, and where none is left no work is started"`
	RetainCount         Count         `split_words:"true" default:"1000" desc:"ended tasks kept per agent; beyond it the oldest go, those that were read first. Unowned work shares one such bucket"`
	RetainAge           time.Duration `split_words:"true" default:"24h" desc:"how long an ended task is kept, read or not"`
	ResultBytes         Size          `split_words:"true" default:"64000" desc:"longest text of a tool's result, at most 4MiB; beyond it the tail is kept"`
	BashBackground      bool          `split_words:"true" default:"true" desc:"whether the tool bash may start background tasks (run_in_background, yield_ms)"`
	BashTimeout         time.Duration `split_words:"true" default:"2m" desc:"how long a foreground command of the tool bash may take that names no time"`
	BashTimeoutMax      time.Duration `split_words:"true" default:"10m" desc:"the longest time for a foreground command of the tool bash; longer ones are cut to it"`
	WebhookHosts        []string      `split_words:"true" desc:"hosts that notices may be posted to, separated by commas: host, host:port, or a range such as 10.0.0.0/8. A name may lead to a private or loopback address only if that is listed too; localhost may lead to loopback. Default: none"`
	WebhookTimeout      time.Duration `split_words:"true" default:"10s" desc:"how long one post to a webhook may take"`
	WakeBudget          Count         `split_words:"true" default:"3" desc:"notices posted to the webhooks of an agent in a row without a call of that agent in between"`
	MaxWebhooksPerAgent Count         `split_words:"true" default:"8" desc:"webhooks that one agent may have"`
	MCPIdle             time.Duration `split_words:"true" default:"30m" desc:"the silence that ends an MCP session; its client begins a new one"`
	Heartbeat           time.Duration `split_words:"true" default:"15s" desc:"the longest silence on an event stream, and before an answer of /mcp"`
	WriteTimeout        time.Duration `split_words:"true" default:"30s" desc:"how long one write to a client may take before the client is cut off"`

	LogLevel  slog.Level `split_words:"true" default:"info" desc:"debug, info, warn or error"`
	LogFormat LogFormat  `split_words:"true" default:"text" desc:"text or json, on standard error"`
	PprofAddr Address    `split_words:"true" desc:"loopback host:port where the profiles of Go's runtime are served to everybody on this machine, tasks too, without a token. Default: nowhere"`
	EnvFile   string     `split_words:"true" desc:"file with AFOOT_ variables, one NAME=value a line; the environment wins"`

	Session string `split_words:"true" desc:"the session that commands act for, else local; afoot token takes --session alone. Set for every task"`
	Token   string `split_words:"true" desc:"the token that commands send instead of making one from the daemon's secret"`
	TaskID  string `split_words:"true" desc:"set by the daemon for every task; read by nothing"`

	// Environ is the whole environment as it was when the configuration was read.
	Environ []string `ignored:"true"`

	// fromFile are the variables that the file gave.
	fromFile map[string]string
}

// loadConfig reads the environment. Every error names the variable to mend. It
// is the only place where Afoot looks at its environment, which on error is as before.
func loadConfig() (cfg *Config, err error) {
	cfg = &Config{Environ: os.Environ()}
	defer func() {
		if err != nil {
			cfg.takeOut()
			cfg = nil
		}
	}()
	known := configNames(cfg)
	for _, pair := range cfg.Environ {
		name, _, _ := strings.Cut(pair, "=")
		if err := checkName(name, known); err != nil {
			return cfg, err
		}
	}
	if err := cfg.loadEnvFile(os.Getenv(envPrefix+"_ENV_FILE"), known); err != nil {
		return cfg, err
	}
	if err := envconfig.Process(envPrefix, cfg); err != nil {
		if bad, ok := errors.AsType[*envconfig.ParseError](err); ok {
			return cfg, fmt.Errorf("%s=%q: %w", bad.KeyName, bad.Value, withUnit(bad.Err))
		}
		return cfg, err
	}
	cfg.Hosts, cfg.Origins, cfg.WebhookHosts = trimmed(cfg.Hosts), trimmed(cfg.Origins), trimmed(cfg.WebhookHosts)
	if err := cfg.resolvePaths(); err != nil {
		return cfg, err
	}
	if err := cfg.check(); err != nil {
		return cfg, err
	}
	return cfg, nil
}

// checkName refuses a variable with Afoot's prefix that Afoot does not know.
func checkName(name string, known []string) error {
	if !strings.HasPrefix(name, envPrefix+"_") || slices.Contains(known, name) {
		return nil
	}
	nearest := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(name, a) - levenshtein.ComputeDistance(name, b)
	})
	return fmt.Errorf("unknown variable %s: the nearest known one is %s (`afoot serve --help` lists all)", name, nearest)
}

// loadEnvFile puts the variables of the file into the environment where it has
// none of that name.
func (c *Config) loadEnvFile(path string, known []string) error {
	if path == "" {
		return nil
	}
	vars, err := godotenv.Read(path)
	if err != nil {
		return fmt.Errorf("%s_ENV_FILE: %w", envPrefix, err)
	}
	for name, value := range vars {
		if !strings.HasPrefix(name, envPrefix+"_") {
			return fmt.Errorf("%s_ENV_FILE: %s: %s does not begin with %s_, and the file is for Afoot's own variables", envPrefix, path, name, envPrefix)
		}
		if err := checkName(name, known); err != nil {
			return fmt.Errorf("%s_ENV_FILE: %s: %w", envPrefix, path, err)
		}
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s_ENV_FILE: %s: %s: %w", envPrefix, path, name, err)
		}
		if c.fromFile == nil {
			c.fromFile = make(map[string]string)
		}
		c.fromFile[name] = value
	}
	return nil
}

// reread reads the configuration anew: the environment is what it was, the file may
// say something else. Who does not take it up puts this one back.
func (c *Config) reread() (*Config, error) {
	c.takeOut()
	next, err := loadConfig()
	if err != nil {
		c.putIn()
	}
	return next, err
}

// putBack undoes a reread of which nothing was taken up.
func (c *Config) putBack(next *Config) {
	next.takeOut()
	c.putIn()
}

// takeOut takes out of the environment what the file put there, putIn puts it back.
func (c *Config) takeOut() {
	for name := range c.fromFile {
		_ = os.Unsetenv(name) // it never fails
	}
}

func (c *Config) putIn() {
	for name, value := range c.fromFile {
		_ = os.Setenv(name, value)
	}
}

// changed names the variables that differ, in their order.
func (c *Config) changed(next *Config) (names []string) {
	known := configNames(&Config{})
	was, is := reflect.ValueOf(*c), reflect.ValueOf(*next)
	for i := range was.NumField() {
		field := was.Type().Field(i)
		if !field.IsExported() || field.Tag.Get("ignored") != "" {
			continue
		}
		if !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			names = append(names, known[0])
		}
		known = known[1:]
	}
	return names
}

// trimmed drops the blanks around list members, and members that are nothing else.
func trimmed(list []string) []string {
	var kept []string
	for _, member := range list {
		if member = strings.TrimSpace(member); member != "" {
			kept = append(kept, member)
		}
	}
	return kept
}

// resolvePaths fills the path defaults and makes paths absolute, so that they
// mean the same to everybody who is told them.
func (c *Config) resolvePaths() error {
	if c.StateDir == "" {
		dir, err := defaultStateDir()
		if err != nil {
			return err
		}
		c.StateDir = dir
	}
	if c.inMemory() {
		c.StateDir = memoryState
	}
	if c.Workdir == "" {
		c.Workdir = "/"
		if home := c.RunAs.home(); isDir(home) {
			c.Workdir = home
		}
	}
	for name, path := range map[string]*string{
		"STATE_DIR": &c.StateDir, "WORKDIR": &c.Workdir, "JWT_SECRET_FILE": &c.JWTSecretFile,
		"TLS_CERT": &c.TLSCert, "TLS_KEY": &c.TLSKey,
	} {
		if *path == "" || *path == memoryState {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("%s_%s=%q: %w", envPrefix, name, *path, err)
		}
		*path = abs
	}
	return nil
}

// defaultStateDir follows the XDG base directories: a relative XDG_STATE_HOME
// does not count.
func defaultStateDir() (string, error) {
	if xdg := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(xdg) {
		return filepath.Join(xdg, "afoot"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%s_STATE_DIR is not set, and there is no home directory to put it in: %w", envPrefix, err)
	}
	return filepath.Join(home, ".local", "state", "afoot"), nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lookup gives a variable of the environment that the configuration was read from.
func (c *Config) lookup(name string) (value string, found bool) {
	for _, pair := range c.Environ {
		if key, text, ok := strings.Cut(pair, "="); ok && key == name {
			value, found = text, true
		}
	}
	return value, found
}

// memoryState is the state directory of a daemon that keeps nothing.
const memoryState = "memory:"

// inMemory says that nothing outlives the daemon, and that nothing of it can be found
// in the file system.
func (c *Config) inMemory() bool { return strings.HasPrefix(c.StateDir, memoryState) }

// secretFile is where the daemon's own secret lives; "" if that is nowhere.
func (c *Config) secretFile() string {
	if c.JWTSecretFile != "" || c.inMemory() {
		return c.JWTSecretFile
	}
	return filepath.Join(c.StateDir, "secret")
}
