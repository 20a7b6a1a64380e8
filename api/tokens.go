package api

import (
	"net/http"
	"time"

	"afoot/api/wire"
)

// makeCode answers POST /auth/code.
func (a *API) makeCode(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	code, expires, err := a.authority.NewCode(c.principal)
	if err != nil {
		return err
	}
	c.Header().Set("Cache-Control", "no-store")
	return reply(c, r, http.StatusCreated, wire.AuthCode{Code: code, ExpiresAt: wireTime(expires)})
}

// exchangeCode answers POST /auth/exchange.
func (a *API) exchangeCode(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	body, err := readBody(c, r)
	if err != nil {
		return err
	}
	var req wire.ExchangeRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if req.Code == "" {
		return invalid("The member \"code\" is missing or empty.")
	}
	token, expires, err := a.authority.Exchange(req.Code)
	if err != nil {
		return err
	}
	return replyToken(c, r, token, expires)
}

// renewToken answers POST /auth/renew.
func (a *API) renewToken(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	token, expires, err := a.authority.Renew(c.principal)
	if err != nil {
		return err
	}
	return replyToken(c, r, token, expires)
}

func replyToken(c *call, r *http.Request, token string, expires time.Time) error {
	c.Header().Set("Cache-Control", "no-store")
	return reply(c, r, http.StatusOK, wire.Token{Token: token, ExpiresAt: wireTime(expires)})
}
