package main

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/spf13/cobra"

	"afoot/auth"
)

type house struct {
	authority *auth.Authority
	handler   http.Handler
	tls       *tls.Config
}
func (h *house) hurry() {}
func (h *house) quiet(context.Context) error { return nil }
func (h *house) close(context.Context) error { return nil }
func buildHouse(cfg *Config, log any) (*house, error) { return nil, nil }
func (a *app) eventsCommand() *cobra.Command { return &cobra.Command{Use: "events"} }
