package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"afoot/registry"
)

// macBytes is how much of an id nobody can guess.
const macBytes = 16

// taskID names a task of a session as an MCP task: by its id, and a seal that only the
// daemon can make. The same task is always named so, also by the next daemon with the
// key.
func (s *Server) taskID(session string, id registry.ID) string {
	mac := hmac.New(sha256.New, s.cfg.Key)
	mac.Write([]byte(session + "\x00" + string(id)))
	return string(id) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:macBytes])
}

// taskOf finds the task that an MCP task's id names in the session.
func (s *Server) taskOf(session, name string) (registry.ID, bool) {
	id, _, sealed := strings.Cut(name, ".")
	if !sealed || !hmac.Equal([]byte(name), []byte(s.taskID(session, registry.ID(id)))) {
		return "", false
	}
	return registry.ID(id), true
}
