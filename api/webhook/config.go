package webhook

import (
	"cmp"
	"crypto/x509"
	"log/slog"
	"net"
	"time"
)

// Config shapes a [Poster]. But for Hosts, zero values mean their default.
type Config struct {
	// Hosts may be posted to; see [CheckHosts]. None: nothing may.
	Hosts []string
	// Timeout bounds one post, from the look-up of the name to the end of the answer.
	// Default 10 s.
	Timeout time.Duration
	// Budget is how many notices of an owner are posted between two calls of that owner.
	// Default 3.
	Budget int
	// MaxPerOwner bounds the webhooks of an owner. Default 8.
	MaxPerOwner int
	// Journal, unless nil, keeps everything; it must outlive the poster.
	Journal Journal
	// Posted, unless nil, hears of the outcome of each post. It must not block.
	Posted func(Outcome)
	// Resolver looks names up; nil is the system's way.
	Resolver *net.Resolver
	// RootCAs verify receivers; nil are the system's.
	RootCAs *x509.CertPool
	// Logger takes posts at debug, and their first failure at info. Default: none.
	Logger *slog.Logger
}

// Limits are what may change while a poster runs.
type Limits struct {
	Hosts               []string
	Timeout             time.Duration
	Budget, MaxPerOwner int
}

func (l Limits) withDefaults() Limits {
	l.Timeout = cmp.Or(l.Timeout, 10*time.Second)
	l.Budget = cmp.Or(l.Budget, 3)
	l.MaxPerOwner = cmp.Or(l.MaxPerOwner, 8)
	return l
}

func (c *Config) limits() Limits {
	return Limits{Hosts: c.Hosts, Timeout: c.Timeout, Budget: c.Budget, MaxPerOwner: c.MaxPerOwner}
}

// Outcome is how a post ended.
type Outcome string

// The outcomes of posts.
const (
	// Delivered: answered 2xx.
	Delivered Outcome = "delivered"
	// Refused: answered otherwise.
	Refused Outcome = "refused"
	// Failed: not answered.
	Failed Outcome = "failed"
	// Forbidden: the host is not listed any more, or its address may not be posted to.
	Forbidden Outcome = "forbidden"
)

// Outcomes gives all of them.
func Outcomes() []Outcome { return []Outcome{Delivered, Refused, Failed, Forbidden} }

// Bounds of what is under way. What waits has none: it is kept until it is answered or
// reported, or its webhook or agent goes.
const (
	maxFlights           = 16
	maxFlightsPerSession = 4
)

// The time between two posts of one notice: it doubles from the first to the last, and
// is cut by up to half at random.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)
