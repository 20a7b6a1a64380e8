package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"afoot/api/wire"
)

// sendInput answers POST /tasks/{id}/input. A task that does not read holds it up for
// a bounded time, and then is told to have taken less.
func (a *API) sendInput(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	body, err := readBody(c, r)
	if err != nil {
		return err
	}
	var req wire.InputRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	data, err := inputBytes(req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.inputTimeout)
	defer cancel()
	result, err := a.service.Input(ctx, c.caller, c.task(), data, req.Close != nil && *req.Close)
	if err != nil {
		return err
	}
	return reply(c, r, http.StatusOK, wireInput(result))
}

// inputBytes gives what is to be written; input that says nothing, or two things, is
// refused.
func inputBytes(req wire.InputRequest) ([]byte, error) {
	switch {
	case req.Data != nil && req.DataBase64 != nil:
		return nil, invalid("The members \"data\" and \"dataBase64\" exclude each other.")
	case req.Data != nil:
		return []byte(*req.Data), nil
	case req.DataBase64 == nil && (req.Close == nil || !*req.Close):
		return nil, invalid("One of the members \"data\", \"dataBase64\" and \"close\" must say what to do.")
	case req.DataBase64 == nil:
		return nil, nil
	}
	data, err := base64.StdEncoding.Strict().DecodeString(*req.DataBase64)
	if err != nil || strings.ContainsAny(*req.DataBase64, "\r\n") { // which the decoder skips
		return nil, invalid("The member \"dataBase64\" is not standard base64.")
	}
	return data, nil
}

// sendSignal answers POST /tasks/{id}/signal.
func (a *API) sendSignal(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	body, err := readBody(c, r)
	if err != nil {
		return err
	}
	var req wire.SignalRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if req.Signal == "" {
		return invalid("The member \"signal\" must be there and name a signal, such as INT.")
	}
	if err := a.service.Signal(r.Context(), c.caller, c.task(), req.Signal); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}
