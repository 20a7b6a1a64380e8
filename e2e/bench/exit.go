package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// exitToNotice measures how long after its end a child's end is known.
//
// The child is the clock: `echo $EPOCHREALTIME` is the last thing that bash does,
// so its output is the realtime (µs) just before its exit. The floor is the moment
// when os/exec Wait has returned, less that stamp; the daemon's time is the moment
// when the notice was read from the stream, less that stamp. Both hold bash's own
// way out, the kernel's reaping and a wake-up; the daemon's holds the stream, too.
func exitToNotice(ctx context.Context, o options, t *table) (err error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return err
	}
	d, err := startDaemon(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("exit")
	if err != nil {
		return err
	}
	l, err := listen(ctx, d, token)
	if err != nil {
		return err
	}
	defer l.close()
	floor := plainEnd(bash, stamp)
	seen, err := beyond(o, floor, l.endToNotice)
	if err != nil {
		return err
	}
	t.add(row{
		name: "exit to notice, p50 to os/exec Wait", floor: ms(all(seen.floor, 0.5)), afoot: ms(all(seen.afoot, 0.5)),
		seen: seen.ratio(0.5), unit: "×", target: 1.5,
	})
	t.told("exit to notice, p99", ms(all(seen.floor, 0.99)), ms(all(seen.afoot, 0.99)), seen.tail(0.99), "×")
	return bareNotice(ctx, o, t, floor)
}

// bareNotice tells what any server must take.
func bareNotice(ctx context.Context, o options, t *table, floor func() (float64, error)) (err error) {
	f, err := startFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	l, err := listen(ctx, f, "none")
	if err != nil {
		return err
	}
	defer l.close()
	seen, err := beyond(o, floor, l.endToNotice)
	if err != nil {
		return err
	}
	t.told("(a bare server instead, p50)", ms(all(seen.floor, 0.5)), ms(all(seen.afoot, 0.5)), seen.ratio(0.5), "×")
	return nil
}

// plainEnd measures when os/exec Wait has returned.
func plainEnd(bash, command string) func() (float64, error) {
	return func() (float64, error) {
		out, err := plainBash(bash, command)
		now := time.Now()
		if err != nil {
			return 0, err
		}
		return since(out, now)
	}
}

// beyond measures floor and daemon in turns; both give how long before now a child wrote its
// stamp, in nanoseconds.
func beyond(o options, floor, server func() (float64, error)) (seen pairs, err error) {
	size := o.pick(20, 10)
	block := func(measure func() (float64, error)) (all []float64, err error) {
		for range size {
			took, err := measure()
			if err != nil {
				return nil, err
			}
			all = append(all, took)
		}
		return all, nil
	}
	for i := range o.pick(50, 8) + 1 {
		f, err := block(floor)
		if err != nil {
			return pairs{}, err
		}
		s, err := block(server)
		if err != nil {
			return pairs{}, err
		}
		if i > 0 { // the first block only warms up
			seen.floor, seen.afoot = append(seen.floor, f), append(seen.afoot, s)
		}
	}
	return seen, nil
}

// since gives how long before now a child wrote its stamp, in nanoseconds.
func since(output string, now time.Time) (float64, error) {
	// Some locales write the fraction behind a comma.
	stamp := strings.Replace(strings.TrimSpace(output), ",", ".", 1)
	whole, fraction, ok := strings.Cut(stamp, ".")
	sec, err1 := strconv.ParseInt(whole, 10, 64)
	usec, err2 := strconv.ParseInt(fraction, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("no time in the output %q: bash 5 or later is needed", output)
	}
	return float64(now.Sub(time.UnixMicro(sec*1e6 + usec))), nil
}

var startStamp = start(stamp)

// listener is a session with one open stream.
type listener struct {
	*wire
	stream *link
	lines  *bufio.Reader
}

func listen(ctx context.Context, s *server, token string) (l *listener, err error) {
	l = &listener{wire: newWire(ctx, s.base, token, 1)}
	if l.stream, err = l.take(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(l.stream, "GET /events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", l.addr, token); err != nil {
		l.close()
		return nil, err
	}
	resp, err := http.ReadResponse(l.stream.in, nil)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET /events: %s", resp.Status)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.lines = bufio.NewReader(resp.Body)
	return l, nil
}

func (l *listener) close() {
	_ = l.stream.Close()
	l.wire.close()
}

// endToNotice runs one task and gives the time from its stamp to its notice.
func (l *listener) endToNotice() (float64, error) {
	var started task
	if err := l.call(http.MethodPost, "/tasks", startStamp, &started); err != nil {
		return 0, err
	}
	now, err := l.notice(started.ID)
	if err != nil {
		return 0, err
	}
	var r read
	if err := l.call(http.MethodGet, "/tasks/"+started.ID+"/output?offset=0", nil, &r); err != nil {
		return 0, err
	}
	if err := r.ended(); err != nil {
		return 0, err
	}
	return since(r.Text, now)
}

// notice gives the moment in which a task's notice was read in full: at the empty
// line behind it.
func (l *listener) notice(id string) (time.Time, error) {
	name, data := "", ""
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			return time.Time{}, err
		}
		now := time.Now()
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		switch field {
		case "event":
			name = strings.TrimSpace(value)
		case "data":
			data = value
		case "":
			var n struct{ Task task }
			if name == "task.done" {
				if err := json.Unmarshal([]byte(data), &n); err != nil {
					return time.Time{}, err
				}
			}
			if n.Task.ID == id {
				return now, nil
			}
			name, data = "", ""
		}
	}
}
