// Command agent shows how an agent lives with long work, without a model: what a
// model would decide is written down here. It starts two tasks, works on, is woken
// by the notice that one has ended, collects it, stops the other, and answers.
//
//	DAEMON_URL=http://127.0.0.1:7420 AFOOT_TOKEN=$(bin/afoot token --session demo) go run ./e2e/examples/agent
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	a := agent{ctx: ctx, url: os.Getenv("DAEMON_URL"), token: os.Getenv("AFOOT_TOKEN"), out: os.Stdout}
	a.live()
	cancel()
	if a.err != nil {
		fmt.Fprintln(os.Stderr, a.err)
		os.Exit(1)
	}
}

// live is one conversation.
func (a *agent) live() {
	// What a model is given before its first turn: a paragraph, and the tools.
	a.say("system", a.get("/tools/guidance"))
	a.get("/tools?format=openai")
	notices := a.listen()

	// It starts work that takes long, and keeps the ids.
	tests := a.call("bash", args{"command": "sleep 1; echo 42 tests passed", "description": "the tests", "run_in_background": true})
	watch := a.call("bash", args{"command": "while :; do sleep 1; done", "description": "a watcher", "run_in_background": true})
	// It goes on with what does not depend on them.
	a.call("bash", args{"command": "echo $((6 * 7))", "description": "something else"})

	// Its turn is over. A message that is put into its conversation wakes it.
	for woken := false; !woken && a.err == nil; {
		select {
		case message := <-notices:
			a.say("user", message)
			woken = strings.HasPrefix(message, "background task "+tests.Value.TaskID+" ")
		case <-a.ctx.Done():
			a.fail(a.ctx.Err())
		}
	}

	// It collects what matters, stops what does not, and answers.
	output := a.call("task_output", args{"task_id": tests.Value.TaskID})
	a.call("task_kill", args{"task_id": watch.Value.TaskID, "reason": "not needed any more"})
	a.say("assistant", "The tests are through: "+output.Value.Text)
}

// agent is a conversation and how it reaches the daemon. After the first error it does
// nothing more.
type agent struct {
	ctx        context.Context //nolint:containedctx // the life of the program
	url, token string
	out        io.Writer
	err        error
}

type args map[string]any

// result is a tool's answer: text for the model, value for the program.
type result struct {
	Content []struct{ Text string }
	Value   struct{ TaskID, Text string }
}

// call calls a tool as a model would. That a tool failed is for the model to read.
func (a *agent) call(name string, arguments args) (r result) {
	body, err := json.Marshal(arguments)
	a.fail(err)
	a.say("assistant", name+" "+string(body))
	answer := a.do(http.MethodPost, "/tools/"+name, bytes.NewReader(body))
	defer func() { _ = answer.Close() }()
	if a.err == nil {
		a.fail(json.NewDecoder(answer).Decode(&r))
	}
	for _, content := range r.Content {
		a.say("tool", content.Text)
	}
	return r
}

// listen gives the text of each notice. A program that must miss none when its
// connection breaks comes back with the Last-Event-ID.
func (a *agent) listen() <-chan string {
	notices := make(chan string, 16)
	answer := a.do(http.MethodGet, "/events?format=openai", nil)
	go func() {
		defer func() { _ = answer.Close() }()
		for lines := bufio.NewScanner(answer); lines.Scan(); {
			data, found := strings.CutPrefix(lines.Text(), "data: ")
			var event struct{ Message struct{ Content string } } // of other events empty
			if found && json.Unmarshal([]byte(data), &event) == nil && event.Message.Content != "" {
				notices <- event.Message.Content
			}
		}
	}()
	return notices
}

func (a *agent) get(path string) string {
	answer := a.do(http.MethodGet, path, nil)
	defer func() { _ = answer.Close() }()
	text, err := io.ReadAll(answer)
	a.fail(err)
	return string(text)
}

// do gives the body of the answer, an empty one after an error.
func (a *agent) do(method, path string, body io.Reader) io.ReadCloser {
	req, err := http.NewRequestWithContext(a.ctx, method, a.url+path, body)
	if a.fail(err); a.err != nil {
		return http.NoBody
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if a.fail(err); a.err != nil {
		return http.NoBody
	}
	if answer.StatusCode != http.StatusOK {
		a.fail(fmt.Errorf("%s %s: %s", method, path, answer.Status))
	}
	return answer.Body
}

func (a *agent) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *agent) say(who, text string) {
	if a.err == nil {
		_, _ = fmt.Fprintf(a.out, "%s: %s\n", who, strings.TrimSpace(text))
	}
}
