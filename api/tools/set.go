package tools

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"afoot/api/render"
	"afoot/registry"
)

// The names of the tools.
const (
	NameBash   = "bash"
	NameOutput = "task_output"
	NameList   = "task_list"
	NameKill   = "task_kill"
)

// Config is what a [Set] is made of. Service is required.
type Config struct {
	Service registry.Service
	// Background lets bash start background tasks: without it run_in_background and
	// yield_ms are neither in the schema nor taken.
	Background bool
	// Timeout (2 min) is how long a foreground command may take that names no time,
	// TimeoutMax (10 min) the longest that it can name; yield_ms is cut to it too.
	Timeout, TimeoutMax time.Duration
	// WaitDefault (30 s) and WaitMax (10 min) bound the waits of task_output.
	WaitDefault, WaitMax time.Duration
	// ResultBytes (64000) bounds each text. Beyond it the tail is kept. More than a page
	// of output holds ([registry.MaxPageBytes]) is cut to it.
	ResultBytes int64
	// Leaving gives a channel that is closed when the daemon is about to be replaced
	// while all tasks run on. Nil never leaves so. Blocked calls that the service
	// releases ask it what to say.
	Leaving func() <-chan struct{}
	// Waiting hears of calls that begin (1) and end (-1) to block; nil for nobody.
	Waiting func(delta int)
	// Started hears how long a start took; nil for nobody.
	Started func(time.Duration)
}

// Set is the tools of a daemon. It is safe for concurrent use.
type Set struct {
	cfg         Config
	definitions []Definition
}

// New makes the tools and their schemas.
func New(cfg Config) (*Set, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Minute)
	cfg.TimeoutMax = cmp.Or(cfg.TimeoutMax, 10*time.Minute)
	cfg.WaitDefault = cmp.Or(cfg.WaitDefault, 30*time.Second)
	cfg.WaitMax = cmp.Or(cfg.WaitMax, 10*time.Minute)
	cfg.ResultBytes = min(cmp.Or(cfg.ResultBytes, 64000), longestTail)
	switch {
	case cfg.Service == nil:
		return nil, errors.New("tools: Service is required")
	case cfg.Timeout < time.Millisecond || cfg.TimeoutMax < cfg.Timeout:
		return nil, fmt.Errorf("tools: the default time of a foreground command (%v) must be at least 1ms and at most the maximum (%v)", cfg.Timeout, cfg.TimeoutMax)
	case cfg.WaitDefault < time.Millisecond || cfg.WaitMax < cfg.WaitDefault:
		return nil, fmt.Errorf("tools: the default wait (%v) must be at least 1ms and at most the maximum (%v)", cfg.WaitDefault, cfg.WaitMax)
	case cfg.ResultBytes < 1:
		return nil, fmt.Errorf("tools: the longest text (%d bytes) must be positive", cfg.ResultBytes)
	}
	if cfg.Leaving == nil {
		cfg.Leaving = func() <-chan struct{} { return nil }
	}
	if cfg.Waiting == nil {
		cfg.Waiting = func(int) {}
	}
	if cfg.Started == nil {
		cfg.Started = func(time.Duration) {}
	}
	s := &Set{cfg: cfg}
	var err error
	if s.definitions, err = define(cfg.Background); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return s, nil
}

// Guidance is a paragraph for a system prompt about how to use the tools.
func (s *Set) Guidance() string { return render.Guidance(s.cfg.Background) }
