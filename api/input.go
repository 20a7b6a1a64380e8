package api

import (
	"encoding/base64"
	"net/http"

	"afoot/api/render"
	"afoot/api/wire"
	"afoot/registry"
)

// sendInput answers POST /tasks/{id}/input. No kind of task reads input yet: what is
// left is to say why.
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
	if err := checkInput(req); err != nil {
		return err
	}
	s, err := a.service.Get(r.Context(), c.caller, c.task())
	switch {
	case err != nil:
		return err
	case s.Status.Terminal():
		return registry.Errorf(registry.CodeConflict, "The task %s has ended, %s; it takes no input.", s.ID, render.StatusLine(s))
	default:
		return registry.Errorf(registry.CodeConflict, "The standard input of the task %s is closed.", s.ID)
	}
}

// checkInput refuses input that says nothing, or two things.
func checkInput(req wire.InputRequest) error {
	switch {
	case req.Data != nil && req.DataBase64 != nil:
		return invalid("The members \"data\" and \"dataBase64\" exclude each other.")
	case req.Data == nil && req.DataBase64 == nil && (req.Close == nil || !*req.Close):
		return invalid("One of the members \"data\", \"dataBase64\" and \"close\" must say what to do.")
	case req.DataBase64 == nil:
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(*req.DataBase64); err != nil {
		return invalid("The member \"dataBase64\" is not standard base64.")
	}
	return nil
}
