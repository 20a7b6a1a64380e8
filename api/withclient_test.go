package api_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"

	"afoot/api/client"
	"afoot/registry"
	"afoot/registry/registrytest"
)

func (w *world) dial() *client.Client {
	w.t.Helper()
	c, err := client.NewClient(w.server.URL, client.WithHTTPClient(w.server.Client()),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+w.token)
			return nil
		}))
	w.is.NoError(err)
	return c
}

// TestClient drives a daemon by the generated client alone.
func TestClient(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	c := &client.ClientWithResponses{ClientInterface: w.dial()}

	var start client.StartTask
	w.is.NoError(start.FromStartBash(client.StartBash{Kind: client.Bash, Command: "make"}))
	started, err := c.StartTaskWithResponse(ctx, &client.StartTaskParams{}, start)
	w.is.NoError(err)
	snap, err := started.JSON201.AsSnapshot()
	w.is.NoError(err)
	w.is.Equal("bash-1", snap.Id)

	work := w.jobs.Work(registry.ID(snap.Id))
	work.Output.Append("one\n")
	var log bytes.Buffer
	followed := make(chan error, 1)
	go func() {
		_, err := w.dial().Follow(ctx, snap.Id, 0, client.GetLogParams{}, &log)
		followed <- err
	}()
	w.eventually(func() bool { return work.Output.OpenLogs() == 1 }, "followed")
	work.Output.Append("two\n")
	work.Complete("exit code: 0")
	w.is.NoError(<-followed)
	w.is.Equal("one\ntwo\n", log.String())
	next, err := w.dial().Follow(ctx, snap.Id, 4, client.GetLogParams{}, &log)
	w.is.NoError(err)
	w.is.EqualValues(8, next)

	for e, err := range w.dial().Subscribe(ctx, client.Subscription{}) {
		w.is.NoError(err)
		if e.Type != "task.done" {
			continue
		}
		done, err := e.Done()
		w.is.NoError(err)
		w.is.Equal("bash-1", done.Task.Id)
		break
	}
	wait := true
	read, err := c.ReadOutputWithResponse(ctx, snap.Id, &client.ReadOutputParams{Wait: &wait})
	w.is.NoError(err)
	w.is.Equal("one\ntwo\n", read.JSON200.Text)
	w.is.Equal(client.Completed, read.JSON200.Snapshot.Status)
	killed, err := c.KillTaskWithResponse(ctx, snap.Id, &client.KillTaskParams{})
	w.is.NoError(err)
	w.is.Equal(client.AlreadyFinished, killed.JSON200.Outcome)

	_, err = client.Check(w.dial().GetTask(ctx, "bash-9", &client.GetTaskParams{}))
	refusal, ok := errors.AsType[*client.RefusalError](err)
	w.is.True(ok)
	w.is.Equal(client.ErrorCodeUnknownTask, refusal.Code)
	w.start(registrytest.Script{})
}
