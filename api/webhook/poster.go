package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The keys of log lines. A URL may hold a secret and is in none.
const (
	keyWebhook = "webhook"
	keyTask    = "task"
	keyError   = "error"
)

// Poster holds the webhooks of all owners and posts to them. Its methods are safe for
// concurrent use.
type Poster struct {
	cfg     Config
	log     *slog.Logger
	journal Journal
	allowed atomic.Pointer[hosts]
	client  *http.Client
	// hooks counts the webhooks, so that who has none pays nothing.
	hooks atomic.Int64
	// wake has the loop look again.
	wake chan struct{}

	// closed is set for good, so that no loop begins and no webhook comes any more.
	closed atomic.Bool

	// turn is held by who starts or stops the loop.
	turn sync.Mutex
	// stop ends the loop that runs, and with patience what is under way; nil is none.
	stop func(context.Context)

	mu       sync.Mutex
	limits   Limits
	accounts map[Owner]*account
	// serial is the newest place of a webhook or a post.
	serial uint64
	// due has the webhooks with something to post, the next one first.
	due plan
	// flying counts posts under way, busy those of each session, and crowded has the
	// webhooks that wait for a place of their session.
	flying  int
	busy    map[string]int
	crowded map[string][]*hook
}

// Open makes a poster that goes on where the one before it on the same journal ended.
// It posts nothing before [Poster.Resume]. Holds of notices are over. An error means
// that the journal could not be read, or what [CheckHosts] says.
func Open(ctx context.Context, cfg Config) (*Poster, error) {
	p := &Poster{
		cfg: cfg, log: cfg.Logger, journal: cfg.Journal,
		wake:     make(chan struct{}, 1),
		accounts: make(map[Owner]*account),
		busy:     make(map[string]int),
		crowded:  make(map[string][]*hook),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.journal == nil {
		p.journal = nowhere{}
	}
	if err := p.SetLimits(cfg.limits()); err != nil {
		return nil, err
	}
	p.client = p.newClient()
	hooks, posts, budgets, err := p.journal.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("webhook: load: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restoreLocked(hooks, posts, budgets)
	return p, nil
}

// restoreLocked takes over what a journal has kept.
func (p *Poster) restoreLocked(hooks []HookRow, posts []PostRow, budgets []BudgetRow) {
	byID := make(map[string]*hook, len(hooks))
	for _, row := range hooks {
		p.serial = max(p.serial, row.Seq)
		key, err := parseSecret(row.Secret)
		if err != nil {
			p.log.Error("a webhook can't be gone on with", keyWebhook, row.ID, keyError, err.Error())
			continue
		}
		owner := Owner{Session: row.Session, Agent: row.Agent}
		acc := p.accounts[owner]
		if acc == nil {
			acc = p.newAccountLocked(owner)
		}
		h := &hook{row: row, key: key, place: -1}
		p.adoptLocked(acc, h)
		byID[row.ID] = h
	}
	for _, row := range posts {
		p.serial = max(p.serial, row.Seq)
		h := byID[row.Hook]
		if h == nil {
			p.journal.PostGone(row.Hook, row.Key)
			continue
		}
		n := p.noticeLocked(h.account, Notice{Key: row.Key, Exact: row.Exact, ID: row.Message, Body: row.Body}, false)
		n.charged = n.charged || row.Charged
		o := &post{hook: h, notice: n, seq: row.Seq}
		h.posts, n.posts = append(h.posts, o), append(n.posts, o)
	}
	for _, row := range budgets {
		if acc := p.accounts[Owner{Session: row.Session, Agent: row.Agent}]; acc != nil {
			acc.spent = row.Spent
		} else {
			row.Spent = 0
			p.journal.Budget(row)
		}
	}
	for _, h := range byID {
		p.planLocked(h)
	}
}

// SetLimits takes other limits up, for posts too that wait already. The error is that
// of [CheckHosts]; then nothing has changed.
func (p *Poster) SetLimits(l Limits) error {
	allowed, err := parseHosts(l.Hosts)
	if err != nil {
		return err
	}
	p.allowed.Store(&allowed)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits = l.withDefaults()
	for _, acc := range p.accounts {
		p.replanLocked(acc)
	}
	return nil
}

// Resume begins to post, unless the poster was closed. It blocks while a Pause does.
func (p *Poster) Resume() {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.stop != nil || p.closed.Load() {
		return
	}
	over := make(chan struct{})
	loop, endLoop := context.WithCancel(context.Background())
	posts, endPosts := context.WithCancel(context.Background())
	go func() {
		defer close(over)
		p.run(loop, posts)
	}()
	p.stop = func(ctx context.Context) {
		endLoop()
		keep := context.AfterFunc(ctx, endPosts)
		<-over
		keep()
		endPosts()
	}
}

// Pause stops posting, and waits for what is under way; what still is when ctx ends is
// broken off and posted again after [Poster.Resume]. All else works on.
func (p *Poster) Pause(ctx context.Context) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.stop != nil {
		p.stop(ctx)
		p.stop = nil
	}
}

// Close is Pause for good. It is idempotent. What is not posted is so after the next
// start.
func (p *Poster) Close(ctx context.Context) {
	p.closed.Store(true) // before the loop is stopped: who resumes next sees it
	p.Pause(ctx)
}

// run posts until loop ends, and then waits for the posts under way.
func (p *Poster) run(loop, posts context.Context) {
	var flights sync.WaitGroup
	defer flights.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-p.wake:
		case <-loop.Done():
			return
		}
		if loop.Err() != nil {
			return
		}
		for _, f := range p.launch(posts) {
			flights.Go(func() { p.fly(f) })
		}
		timer.Reset(p.rest())
	}
}
