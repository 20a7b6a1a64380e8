package webhook

import (
	"slices"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// account is what one owner has. It exists while it has a webhook. All in this file is
// guarded by Poster.mu.
type account struct {
	owner   Owner
	hooks   []*hook // in the order of their making
	notices map[string]*notice
	// spent is how many notices were posted since the owner's last call.
	spent int
}

// notice is posted to at least one webhook still.
type notice struct {
	Notice
	account *account
	held    bool
	// charged says that it has taken its part of the budget.
	charged bool
	posts   []*post
}

// post is one notice for one webhook.
type post struct {
	hook     *hook
	notice   *notice
	seq      uint64
	attempts int
	// due is when it may be tried; zero is at once.
	due time.Time
	// cancel, while it is under way, ends that.
	cancel func()
}

// hook is one webhook.
type hook struct {
	row       HookRow
	key       *standardwebhooks.Webhook
	account   *account
	posts     []*post // in the order in which they came
	flying    *post
	lastError string
	gone      bool
	// joining, until what was pending is known, has what happened meanwhile to a key,
	// or to an exact identity. Then it is nil.
	joining map[string]joined
	// at is when the webhook is due, and place where it stands among those that are;
	// -1 is nowhere.
	at    time.Time
	place int
}

type joined int

const (
	joinedGone joined = iota + 1
	joinedHeld
	joinedDue
)

// note tells webhooks that are joining what happens to a key.
func (acc *account) note(key string, event joined) {
	for _, h := range acc.hooks {
		if h.joining != nil {
			h.joining[key] = event
		}
	}
}

func (h *hook) viewLocked(budget int) Hook {
	view := Hook{ID: h.row.ID, URL: h.row.URL, Created: h.row.Created, Pending: len(h.posts), LastError: h.lastError}
	for _, o := range h.posts {
		view.Waiting = view.Waiting || !o.notice.held && !o.affordable(budget)
	}
	return view
}

func (o *post) affordable(budget int) bool {
	return o.notice.charged || o.notice.account.spent < budget
}

func (o *post) row() PostRow {
	n := o.notice
	return PostRow{Hook: o.hook.row.ID, Key: n.Key, Seq: o.seq, Exact: n.Exact, Message: n.ID, Body: n.Body, Charged: n.charged}
}

func (p *Poster) newAccountLocked(owner Owner) *account {
	acc := &account{owner: owner, notices: make(map[string]*notice)}
	p.accounts[owner] = acc
	return acc
}

func (p *Poster) adoptLocked(acc *account, h *hook) {
	h.account = acc
	acc.hooks = append(acc.hooks, h)
	p.hooks.Add(1)
}

// noticeLocked gives the notice of a key, made if need be.
func (p *Poster) noticeLocked(acc *account, n Notice, held bool) *notice {
	known := acc.notices[n.Key]
	if known == nil {
		known = &notice{Notice: n, account: acc, held: held}
		acc.notices[n.Key] = known
	}
	return known
}

// attachLocked has a notice posted to a webhook.
func (p *Poster) attachLocked(h *hook, n *notice) {
	p.serial++
	o := &post{hook: h, notice: n, seq: p.serial}
	h.posts = append(h.posts, o)
	n.posts = append(n.posts, o)
	p.journal.PutPosts(o.row())
	p.planLocked(h)
}

// detachLocked ends a post, however it stands.
func (p *Poster) detachLocked(o *post) {
	h, n := o.hook, o.notice
	h.posts = slices.DeleteFunc(h.posts, func(other *post) bool { return other == o })
	n.posts = slices.DeleteFunc(n.posts, func(other *post) bool { return other == o })
	if len(n.posts) == 0 && n.account.notices[n.Key] == n {
		delete(n.account.notices, n.Key)
	}
	p.journal.PostGone(h.row.ID, n.Key)
	p.planLocked(h)
}

// forgetLocked ends all posts of a notice.
func (p *Poster) forgetLocked(n *notice) {
	for _, o := range slices.Clone(n.posts) {
		p.detachLocked(o)
	}
}

// joinLocked ends the joining of a webhook: it gets what was pending, but for what was
// taken back meanwhile.
func (p *Poster) joinLocked(h *hook, known []Pending) {
	if h.gone {
		return
	}
	events := h.joining
	h.joining = nil
	for _, n := range known {
		event := events[n.Key]
		if event == joinedGone || events[n.Exact] == joinedGone {
			continue
		}
		if slices.ContainsFunc(h.posts, func(o *post) bool { return o.notice.Key == n.Key }) {
			continue
		}
		held := event == joinedHeld || n.Held && event != joinedDue
		p.attachLocked(h, p.noticeLocked(h.account, n.Notice, held))
	}
	p.planLocked(h)
}

// dropLocked removes a webhook; the last one takes the account with it.
func (p *Poster) dropLocked(h *hook) {
	if h.gone {
		return
	}
	h.gone = true
	if h.flying != nil {
		h.flying.cancel()
	}
	for _, o := range slices.Clone(h.posts) {
		p.detachLocked(o)
	}
	p.planLocked(h)
	p.journal.HookGone(h.row.ID)
	acc := h.account
	acc.hooks = slices.DeleteFunc(acc.hooks, func(other *hook) bool { return other == h })
	p.hooks.Add(-1)
	if len(acc.hooks) == 0 {
		p.spendLocked(acc, 0)
		delete(p.accounts, acc.owner)
	}
}

// spendLocked sets what an owner has spent.
func (p *Poster) spendLocked(acc *account, spent int) {
	if acc.spent != spent {
		acc.spent = spent
		p.journal.Budget(BudgetRow{Session: acc.owner.Session, Agent: acc.owner.Agent, Spent: spent})
	}
}

// chargeLocked takes a notice's part of the budget, before its first post.
func (p *Poster) chargeLocked(n *notice) {
	if n.charged {
		return
	}
	n.charged = true
	for _, o := range n.posts {
		p.journal.PutPosts(o.row())
	}
	p.spendLocked(n.account, n.account.spent+1)
}
