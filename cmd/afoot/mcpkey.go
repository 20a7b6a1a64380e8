package main

import (
	"crypto/rand"
	"encoding/base64"
)

// mcpKeySetting is where the journal has the key that seals the ids of MCP tasks.
const mcpKeySetting = "mcp_key"

// mcpKey is that key: it stays as long as the tasks do. Nil in memory.
func (h *house) mcpKey() []byte {
	if h.journal == nil {
		return nil
	}
	text, _ := h.journal.Setting(mcpKeySetting)
	if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) == 32 {
		return key
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	h.journal.SetSetting(mcpKeySetting, base64.StdEncoding.EncodeToString(key))
	return key
}
