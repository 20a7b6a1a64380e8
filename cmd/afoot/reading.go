package main

import (
	"context"
	"errors"
	"time"

	"afoot/api/client"
)

// reading takes the unread output of a task. Every piece is acknowledged only
// after sink has it (but for standard error alone), so that a broken pipe or a killed command loses nothing:
// the next reading begins with the piece that was not taken.
type reading struct {
	remote *remote
	id     string
	agent  *string
	// stream is one stream of a split task; without a name both are read.
	stream streamFlag
	// wait stays until the end of the task, at most until the time that is set.
	wait  bool
	until time.Time
	// sink takes each piece; nil drops them.
	sink func(client.TaskRead) error
}

// run gives the last read, also with the error of its ack.
func (g *reading) run(ctx context.Context) (client.TaskRead, error) {
	for {
		read, err := g.once(ctx)
		if err != nil || !g.more(read) {
			return read, err
		}
	}
}

// more reports whether the next read has, or may wait for, something new.
func (g *reading) more(read client.TaskRead) bool {
	begin, end, eof := read.Offset, read.NextOffset, read.Eof
	if second := read.Stderr; second != nil {
		begin, end, eof = begin+second.Offset, end+second.NextOffset, eof && second.Eof
	}
	if eof {
		return false
	}
	if end > begin && end < read.Snapshot.OutputBytes {
		return true
	}
	return g.wait && !terminal(read.Snapshot) && (g.until.IsZero() || time.Now().Before(g.until))
}

func (g *reading) once(ctx context.Context) (client.TaskRead, error) {
	params := &client.ReadOutputParams{Stream: g.stream.param(), AfootAgent: g.agent}
	acks := g.stream.name != string(client.Stderr) // an ack counts standard output
	if acks {
		params.AfootAck = optional(client.ReadOutputParamsAfootAckExplicit)
	}
	if g.wait {
		params.Wait = optional(true)
		if !g.until.IsZero() {
			params.TimeoutMs = optional(max(1, time.Until(g.until).Milliseconds()))
		}
	}
	read, err := decode[client.TaskRead](g.remote.ReadOutput(ctx, g.id, params))
	if err != nil {
		return read, err
	}
	if g.sink != nil {
		if err := g.sink(read); err != nil {
			return read, err
		}
	}
	if !acks {
		return read, nil
	}
	err = discard(g.remote.AckOutput(ctx, g.id, &client.AckOutputParams{AfootAgent: g.agent}, client.AckRequest{NextOffset: read.NextOffset}, client.Repeatable))
	if no, ok := errors.AsType[*client.RefusalError](err); ok && no.Code == client.ErrorCodeConflict {
		err = nil // nothing was handed out, or somebody else took it already
	}
	return read, err
}

func terminal(task client.Snapshot) bool { return task.FinishedAt != 0 }
