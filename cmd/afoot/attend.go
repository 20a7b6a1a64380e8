package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"afoot/api/client"
	"afoot/api/render"
	"afoot/registry"
)

// attend stays with a task until its end: prints its output, stops it at the
// first signal, leaves it at the second, and returns its exit code as an error.
func (a *app) attend(ctx context.Context, r *remote, id string, o runOptions, signals <-chan os.Signal) error {
	show := newPulse(a.stderr, id+" is running")
	defer show.Close()
	var helpers sync.WaitGroup
	defer helpers.Wait()
	ctx, cancel := r.patient(ctx, func(note string) { a.note(show, "%s", note) })
	defer cancel()

	split := o.streams == string(client.Split)
	if o.stdin == string(client.Open) {
		// Nobody waits for it: what reads a terminal can't be called back.
		go a.forward(ctx, r, id, os.Stdin)
	}
	type ending struct {
		read client.TaskRead
		err  error
	}
	ended := make(chan ending, 1)
	go func() {
		read, err := a.watch(ctx, r, id, split, show)
		ended <- ending{read, err}
	}()
	stops := 0
	for {
		select {
		case end := <-ended:
			if end.err != nil {
				return cause(ctx, end.err)
			}
			show.Close()
			return a.verdict(end.read)
		case <-signals:
			if stops++; stops > 1 {
				cancel()
				<-ended
				show.Close()
				fmt.Fprintf(a.stderr, "afoot: left %[1]s; `afoot output --wait %[1]s` reads on\n", id)
				return exitError{code: exitSignal + int(unix.SIGINT)}
			}
			helpers.Go(func() { a.interrupt(ctx, r, id, show) })
		}
	}
}

// interrupt asks the task to end and says so.
func (a *app) interrupt(ctx context.Context, r *remote, id string, show *pulse) {
	_, err := decode[client.KillResult](r.KillTask(ctx, id, &client.KillTaskParams{Reason: optional("interrupted"), AfootAgent: a.header()}, client.Repeatable))
	switch {
	case err == nil:
		a.note(show, "stopping %s; Ctrl-C again leaves it", id)
	case ctx.Err() == nil:
		a.note(show, "stop %s: %s", id, oneLine(err))
	}
}

// watch prints the output until the end, unless JSON is wanted, and then takes
// delivery of the end: the caller was told, so no notice is due any more.
func (a *app) watch(ctx context.Context, r *remote, id string, split bool, show *pulse) (client.TaskRead, error) {
	if a.json {
		read, err := a.collect(ctx, r, id)
		return a.met(show, read, err)
	}
	if err := a.print(ctx, r, id, split, show); err != nil {
		return client.TaskRead{}, err
	}
	take := reading{remote: r, id: id, agent: a.header(), wait: true}
	read, err := take.run(ctx)
	return a.met(show, read, err)
}

// met gives the end that was read also where its ack was lost: who waited for it has it.
func (a *app) met(show *pulse, read client.TaskRead, err error) (client.TaskRead, error) {
	if err != nil && read.Eof && terminal(read.Snapshot) {
		a.note(show, "the end of %s may be announced again: %s", read.Snapshot.Id, oneLine(noDaemon(err)))
		err = nil
	}
	return read, err
}

// print prints the output until the end, of a split task both streams where they
// belong.
func (a *app) print(ctx context.Context, r *remote, id string, split bool, show *pulse) error {
	if !split {
		return a.follow(ctx, r, id, streamFlag{}, printer{a, show, a.stdout})
	}
	second := make(chan error, 1)
	go func() {
		second <- a.follow(ctx, r, id, streamFlag{string(client.Stderr)}, printer{a, show, a.stderr})
	}()
	err := a.follow(ctx, r, id, streamFlag{}, printer{a, show, a.stdout})
	return errors.Join(err, <-second)
}

// collect waits for the end and gives the whole unread output as one read.
func (a *app) collect(ctx context.Context, r *remote, id string) (client.TaskRead, error) {
	var text, second strings.Builder
	begin, begin2 := int64(-1), int64(0)
	take := reading{remote: r, id: id, agent: a.header(), wait: true, sink: func(read client.TaskRead) error {
		if begin < 0 {
			begin = read.Offset
			if read.Stderr != nil {
				begin2 = read.Stderr.Offset
			}
		}
		text.WriteString(read.Text)
		if read.Stderr != nil {
			second.WriteString(read.Stderr.Text)
		}
		return nil
	}}
	read, err := take.run(ctx)
	read.Text, read.Offset = text.String(), max(begin, 0)
	if read.Stderr != nil {
		read.Stderr.Text, read.Stderr.Offset = second.String(), begin2
	}
	return read, err
}

// verdict prints what the output does not say, and exits as the task did.
func (a *app) verdict(read client.TaskRead) error {
	task := read.Snapshot
	if a.json {
		if err := a.printJSON(read); err != nil {
			return err
		}
	} else if task.Status != client.Completed || strings.Contains(task.Detail, ";") {
		fmt.Fprintf(a.stderr, "afoot: %s %s\n", task.Id, statusLine(task))
	}
	if code := taskCode(task); code != exitOK {
		return exitError{code: code}
	}
	return nil
}

// taskCode is the exit code of a finished task as a shell would tell it.
func taskCode(task client.Snapshot) int {
	if code, ok := task.Result["exitCode"].(float64); ok {
		return int(code)
	}
	if name, ok := task.Result["signal"].(string); ok {
		if num := unix.SignalNum(name); num != 0 {
			return exitSignal + int(num)
		}
	}
	return exitRun
}

// statusLine is the line that closes every text about a task.
func statusLine(task client.Snapshot) string { return render.StatusLine(worded(task)) }

// worded is what the words about a task need of it. They are not cut to the limit
// of the task here: people read them.
func worded(task client.Snapshot) registry.Snapshot {
	return registry.Snapshot{ID: registry.ID(task.Id), Status: registry.Status(task.Status), Detail: task.Detail}
}
