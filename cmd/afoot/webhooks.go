package main

import (
	"context"
	"time"

	"afoot/api/webhook"
)

// hookPatience is for posts under way when the daemon ends or is replaced. A receiver
// may wait for the daemon meanwhile, which then waits for nobody.
const hookPatience = 2 * time.Second

// hookLimits are what webhooks are bound by.
func (c *Config) hookLimits() webhook.Limits {
	return webhook.Limits{
		Hosts:       c.WebhookHosts,
		Timeout:     c.WebhookTimeout,
		Budget:      int(c.WakeBudget),
		MaxPerOwner: int(c.MaxWebhooksPerAgent),
	}
}

// openWebhooks makes what posts notices, with all that an earlier daemon had to post. It
// begins when requests are taken: who is woken calls at once.
func (h *house) openWebhooks(ctx context.Context) (err error) {
	limits := h.cfg.hookLimits()
	config := webhook.Config{
		Hosts: limits.Hosts, Timeout: limits.Timeout, Budget: limits.Budget, MaxPerOwner: limits.MaxPerOwner,
		Posted: h.meters.posted,
		Logger: h.log,
	}
	if h.journal != nil {
		config.Journal = h.journal.Webhooks()
	}
	h.hooks, err = webhook.Open(ctx, config)
	return err
}

// pauseWebhooks stops posting for a while.
func (h *house) pauseWebhooks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	h.hooks.Pause(ctx)
}

// closeWebhooks stops posting. It takes a house that was not finished, and may come twice.
func (h *house) closeWebhooks() {
	if h.hooks == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hookPatience)
	defer cancel()
	h.hooks.Close(ctx)
}
