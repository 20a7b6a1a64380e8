package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// server is a process that was started for a measurement.
type server struct {
	cmd  *exec.Cmd
	base string // "http://127.0.0.1:port"
	dir  string
	key  []byte
	gone chan struct{} // closed when it was reaped
	stop func()        // asks it to end
}

// startDaemon starts the binary under test with a state directory of its own,
// limits that the cases need, and more environment ("NAME=value").
func startDaemon(ctx context.Context, o options, env ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "afoot-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, key: []byte(rand.Text() + rand.Text())}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, s.key, 0o600); err != nil {
		return nil, errors.Join(err, s.close())
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.base = "http://" + addr
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.cmd = exec.Command(bin, "serve")
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AFOOT_") {
			s.cmd.Env = append(s.cmd.Env, kv)
		}
	}
	s.cmd.Env = append(s.cmd.Env, "AFOOT_ADDR="+addr, "AFOOT_STATE_DIR="+filepath.Join(dir, "state"), "AFOOT_WORKDIR="+dir,
		"AFOOT_JWT_SECRET_FILE="+secret, "AFOOT_MAX_TASKS_PER_OWNER=1000", "AFOOT_MAX_TASKS=20000")
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = log, log, dir
	err = s.launch()
	err = errors.Join(err, log.Close())
	if err == nil {
		err = s.ready(ctx)
	}
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("the daemon did not start: %w\n%s", err, text), s.close())
	}
	return s, nil
}

// startFloor starts this binary as the bare server.
func startFloor() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(self, floorArg)}
	// It lives as long as its standard input, and so never longer than this process.
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = os.Stderr
	if err := s.launch(); err != nil {
		return nil, err
	}
	s.stop = func() { _ = in.Close() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.base = strings.TrimSpace(line)
	return s, nil
}

func (s *server) launch() error {
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.gone = make(chan struct{})
	s.stop = func() { _ = s.cmd.Process.Signal(syscall.SIGTERM) }
	go func() {
		defer close(s.gone)
		_ = s.cmd.Wait()
	}()
	return nil
}

func (s *server) ready(ctx context.Context) error {
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		resp, err := http.Get(s.base + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-s.gone:
			return errors.New("it ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("it is not ready")
}

// close ends the process by its pid, waits for it, and removes its directory.
func (s *server) close() error {
	if s.gone != nil {
		s.stop()
		select {
		case <-s.gone:
		case <-time.After(30 * time.Second):
			_ = s.cmd.Process.Kill()
			<-s.gone
		}
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// token signs a token for a session.
func (s *server) token(session string) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sid": session, "sub": "bench", "scope": "tasks:read tasks:write", "exp": time.Now().Add(2 * time.Hour).Unix(),
	}).SignedString(s.key)
}

// memoryKiB gives the proportional set size once it has come to rest: the least of
// some seconds, since a collector gives memory back late.
func (s *server) memoryKiB(ctx context.Context) (float64, error) {
	least := 0.0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(rest); ; {
		pss, err := pssKiB(s.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		if least == 0 || pss < least {
			least = pss
		}
		if time.Now().After(end) {
			return least, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func pssKiB(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			return strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
		}
	}
	return 0, errors.New("no Pss in smaps_rollup")
}

// stat gives the fields of /proc/PID/stat from the third on.
func stat(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat: %q", pid, data)
	}
	return fields, nil
}

// processorTime gives what the process has used so far, its children left out, in
// steps of a hundredth of a second.
func (s *server) processorTime() (time.Duration, error) {
	fields, err := stat(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// descendants counts the live processes below the server, and its threads.
func (s *server) descendants() (processes, threads int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, 0, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fields, err := stat(pid)
		if err != nil || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	own, err := stat(s.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	if threads, err = strconv.Atoi(own[17]); err != nil {
		return 0, 0, err
	}
	for below := children[s.cmd.Process.Pid]; len(below) > 0; below = below[1:] {
		processes++
		below = append(below, children[below[0]]...)
	}
	return processes, threads, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := l.Addr().String()
	return addr, l.Close()
}
