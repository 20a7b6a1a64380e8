package api

import (
	"encoding/json"
	"slices"
)

// The conversations that a notice can be a message for.
const (
	formatOpenAI    = "openai"
	formatAnthropic = "anthropic"
)

// withMessage gives a shape for the data of task.done that adds the message for a
// conversation; nil for no format.
func withMessage(format string) func(data []byte) []byte {
	if format == "" {
		return nil
	}
	return func(data []byte) []byte {
		var done struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(data, &done); err != nil || len(data) < 2 {
			return data // this daemon wrote it
		}
		type part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		message := struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		}{Role: "user", Content: done.Text}
		if format == formatAnthropic {
			message.Content = []part{{Type: "text", Text: done.Text}}
		}
		return slices.Concat(data[:len(data)-1], []byte(`,"message":`), encode(message), []byte("}"))
	}
}
