package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// plainBash is the floor of a run: bash by os/exec, both streams through one pipe.
func plainBash(path, command string) (string, error) {
	out, err := exec.Command(path, "-c", command).CombinedOutput()
	return string(out), err
}

// bare answers the calls of the cases with net/http and os/exec and nothing else:
// what any server of these calls must cost.
type bare struct {
	bash string
	// ends are of tasks that ended, for a stream if there is one.
	ends chan task

	mu    sync.Mutex
	next  int
	tasks map[string]*bareTask
}

type bareTask struct {
	done chan struct{} // closed after output and code were set
	out  bytes.Buffer
	code int
}

// serveFloor serves until in ends; the first line of out is the address.
func serveFloor(in io.Reader, out io.Writer) error {
	path, err := exec.LookPath("bash")
	if err != nil {
		return err
	}
	b := &bare{bash: path, ends: make(chan task, 1), tasks: map[string]*bareTask{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tasks", b.start)
	mux.HandleFunc("GET /tasks/{id}/output", b.wait)
	mux.HandleFunc("GET /events", b.stream)
	mux.HandleFunc("GET /blocked", b.blocked)
	mux.HandleFunc("GET /bulk", b.bulk)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (b *bare) start(w http.ResponseWriter, r *http.Request) {
	collect := r.URL.Query().Get("wait") == "true"
	var body struct{ Command string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t := &bareTask{done: make(chan struct{})}
	cmd := exec.Command(b.bash, "-c", body.Command)
	cmd.Stdout, cmd.Stderr = &t.out, &t.out
	if err := cmd.Start(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b.mu.Lock()
	b.next++
	id := "bash-" + strconv.Itoa(b.next)
	b.tasks[id] = t
	b.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		t.code = cmd.ProcessState.ExitCode()
		close(t.done)
		select {
		case b.ends <- t.end(id):
		default:
		}
	}()
	if collect {
		b.collect(w, r, id, http.StatusCreated)
		return
	}
	answer(w, http.StatusCreated, task{ID: id, Status: "running"})
}

func (b *bare) wait(w http.ResponseWriter, r *http.Request) {
	b.collect(w, r, r.PathValue("id"), http.StatusOK)
}

func (b *bare) collect(w http.ResponseWriter, r *http.Request, id string, status int) {
	b.mu.Lock()
	t := b.tasks[id]
	delete(b.tasks, id)
	b.mu.Unlock()
	if t == nil {
		http.NotFound(w, r)
		return
	}
	select {
	case <-t.done:
	case <-r.Context().Done():
		return
	}
	answer(w, status, read{Text: t.out.String(), EOF: true, Snapshot: t.end(id)})
}

// end is what is told of a task that is done.
func (t *bareTask) end(id string) task {
	return task{ID: id, Status: "completed", Detail: "exit code: " + strconv.Itoa(t.code)}
}

// stream is the barest event stream: a header, and the ends that it gets hold of.
func (b *bare) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush()
	for {
		select {
		case end := <-b.ends:
			data, err := json.Marshal(map[string]task{"task": end})
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(w, "event: task.done\ndata: %s\n\n", data)
			_ = control.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// blocked is the barest wait: silence until its caller leaves.
func (b *bare) blocked(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
