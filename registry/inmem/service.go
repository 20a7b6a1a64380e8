package inmem

import (
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"time"

	"afoot/registry"
)

// Config bounds a Service. Zero values take the defaults.
type Config struct {
	// MaxTasksPerOwner bounds live tasks per exact owner, and those of nobody (10).
	MaxTasksPerOwner int
	// MaxTasks bounds live tasks altogether (1000).
	MaxTasks int
	// MaxAgentsPerSession bounds live agents that were opened (64).
	MaxAgentsPerSession int
	// TeardownTimeout is how long an owner's end or the service's waits for a
	// cancelled task before its record is failed by force (8 s: a producer's grace
	// and five seconds after its last escalation).
	TeardownTimeout time.Duration
	// RetainCount bounds ended tasks per exact owner, and those of nobody (1000).
	// Beyond it the oldest reported ones go, unreported ones only when they alone are
	// too many.
	RetainCount int
	// RetainAge is how long an ended task is kept at most (24 h).
	RetainAge time.Duration
	// Room is asked before each start whether there is room for its output; nil means
	// always. While it errs, ended and reported tasks give way, oldest first; when none is
	// left, its error is the start's. It is called with no lock held, must not block, and
	// must neither start tasks nor call MakeRoom.
	Room func() error
	// Journal keeps what must outlive this process; nil keeps nothing. With one, [Service.Load]
	// has to come before everything else. Its owner closes it after [Service.Close].
	Journal registry.Journal
	// Adopt is what [Service.Moved] gave in an earlier image of this process: Load goes
	// on with the live work that it names.
	Adopt json.RawMessage
	// Logger hears of panics, broken promises and lost work.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxTasksPerOwner == 0 {
		c.MaxTasksPerOwner = 10
	}
	if c.MaxTasks == 0 {
		c.MaxTasks = 1000
	}
	if c.MaxAgentsPerSession == 0 {
		c.MaxAgentsPerSession = 64
	}
	if c.TeardownTimeout == 0 {
		c.TeardownTimeout = 8 * time.Second
	}
	if c.RetainCount == 0 {
		c.RetainCount = 1000
	}
	if c.RetainAge == 0 {
		c.RetainAge = 24 * time.Hour
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Service implements [registry.Service].
type Service struct {
	cfg Config
	// closing is closed when Close begins: see shutting.
	closing chan struct{}
	// closed is closed when Close has done everything.
	closed chan struct{}
	// disposals are the disposals under way; Close waits for them.
	disposals sync.WaitGroup
	// sweeps are the sweeps of retention; Close waits for them.
	sweeps sync.WaitGroup

	mu       sync.Mutex // guards all below
	shut     bool
	loading  bool   // nothing is served until what was kept is back
	seq      uint64 // registration order of tasks and agents
	records  map[registry.ID]*record
	sessions map[string]*session
	agents   map[string]*agent
	opened   uint64 // the number of the newest opened agent
	unowned  bucket
	total    bucket
	numbers  map[registry.Kind]*numbers
	counts   map[registry.Kind]map[registry.Status]int
	keys     idempotency
	plugs    attachments
	keep     retention
	life     life
	events   eventQueue
	rows     rows
	move     moving
}

var _ registry.Service = (*Service)(nil)

// New makes an empty Service. The caller closes it. With a [Config.Journal] every
// verb is [registry.CodeUnavailable] until [Service.Load] has brought back what was
// kept.
func New(cfg Config) *Service {
	return &Service{
		cfg:      cfg.withDefaults(),
		closing:  make(chan struct{}),
		closed:   make(chan struct{}),
		records:  map[registry.ID]*record{},
		sessions: map[string]*session{},
		agents:   map[string]*agent{},
		numbers:  map[registry.Kind]*numbers{},
		counts:   map[registry.Kind]map[registry.Status]int{},
		keys:     newIdempotency(),
		plugs:    newAttachments(),
		keep:     newRetention(),
		life:     life{begun: now()},
		loading:  cfg.Journal != nil,
		move:     newMoving(),
	}
}

// Counts gives the number of records by kind and status.
func (s *Service) Counts() map[registry.Kind]map[registry.Status]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[registry.Kind]map[registry.Status]int, len(s.counts))
	for kind, by := range s.counts {
		out[kind] = maps.Clone(by)
	}
	return out
}

func (s *Service) countLocked(kind registry.Kind, status registry.Status, delta int) {
	by := s.counts[kind]
	if by == nil {
		by = map[registry.Status]int{}
		s.counts[kind] = by
	}
	by[status] += delta
}
