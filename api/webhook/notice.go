package webhook

import (
	"context"
	"slices"
)

// Notice is what is to be posted. The poster keeps Body: it must not be changed.
type Notice struct {
	// Key names what the notice is about, within its owner.
	Key string
	// Exact is the exact identity that is told; [Poster.DropNotices] compares it.
	Exact string
	// ID is the message id, the same in each post. It has no dot.
	ID string
	// Body is posted as it is: JSON.
	Body []byte
}

// Pending is a notice that was due before a webhook was added. One that is held waits
// for [Poster.Due].
type Pending struct {
	Notice
	Held bool
}

// Notice has a notice posted to the webhooks that its owner has now. One of a key that
// is pending is there already.
func (p *Poster) Notice(owner Owner, n Notice) {
	p.with(owner, func(acc *account) {
		if acc.notices[n.Key] != nil {
			return
		}
		for _, h := range acc.hooks {
			p.attachLocked(h, p.noticeLocked(acc, n, false))
		}
	})
}

// Withdraw takes a notice back: it is not posted any more. A post that is under way at
// this moment may still arrive.
func (p *Poster) Withdraw(owner Owner, key string) {
	p.with(owner, func(acc *account) {
		acc.note(key, joinedGone)
		if n := acc.notices[key]; n != nil {
			p.forgetLocked(n)
		}
	})
}

// Hold keeps a notice back until it is due again or withdrawn.
func (p *Poster) Hold(owner Owner, key string) { p.hold(owner, key, true) }

// Due ends a hold.
func (p *Poster) Due(owner Owner, key string) { p.hold(owner, key, false) }

func (p *Poster) hold(owner Owner, key string, held bool) {
	p.with(owner, func(acc *account) {
		event := joinedDue
		if held {
			event = joinedHeld
		}
		acc.note(key, event)
		if n := acc.notices[key]; n != nil && n.held != held {
			n.held = held
			p.replanLocked(acc)
		}
	})
}

// DropNotices takes the notices of one exact identity back.
func (p *Poster) DropNotices(owner Owner, exact string) {
	p.with(owner, func(acc *account) {
		acc.note(exact, joinedGone)
		for _, n := range acc.notices {
			if n.Exact == exact {
				p.forgetLocked(n)
			}
		}
	})
}

// DropOwner removes all that an owner has.
func (p *Poster) DropOwner(owner Owner) { p.DropUpTo(owner, p.Newest()) }

// Newest is the place of the newest webhook.
func (p *Poster) Newest() (place uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serial
}

// DropUpTo removes the webhooks of an owner that were there when Newest gave that place.
func (p *Poster) DropUpTo(owner Owner, place uint64) {
	p.with(owner, func(acc *account) {
		for _, h := range slices.Clone(acc.hooks) {
			if h.row.Seq <= place {
				p.dropLocked(h)
			}
		}
	})
}

// Called says that an owner has made a call: its budget is whole again. It is cheap.
func (p *Poster) Called(owner Owner) {
	p.with(owner, func(acc *account) {
		if acc.spent > 0 {
			p.spendLocked(acc, 0)
			p.replanLocked(acc)
		}
	})
}

// with runs a change on what an owner has, if it has anything.
func (p *Poster) with(owner Owner, change func(*account)) {
	if p.hooks.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if acc := p.accounts[owner]; acc != nil {
		change(acc)
	}
}

// Kept is a notice that a poster has.
type Kept struct {
	Owner      Owner
	Key, Exact string
}

// Kept gives all that is to be posted, and all owners that have webhooks, so that
// whoever knows what they are about can take back what is no longer true.
func (p *Poster) Kept() (notices []Kept, owners []Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for owner, acc := range p.accounts {
		owners = append(owners, owner)
		for _, n := range acc.notices {
			notices = append(notices, Kept{Owner: owner, Key: n.Key, Exact: n.Exact})
		}
	}
	return notices, owners
}

// Pending counts the posts that are not answered 2xx yet.
func (p *Poster) Pending() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, acc := range p.accounts {
		for _, h := range acc.hooks {
			n += len(h.posts)
		}
	}
	return n
}

// Sync blocks until all that was changed so far is kept, or says why it can't be.
func (p *Poster) Sync(ctx context.Context) error { return p.journal.Sync(ctx) }

// MaxPerOwner is how many webhooks an owner may have.
func (p *Poster) MaxPerOwner() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limits.MaxPerOwner
}
