package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"afoot/api"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/sse"
)

// rooms is the daemon without its command and its sockets: registry, hub and HTTP
// interface, wired as the command does, called through the handler.
type rooms struct {
	service *inmem.Service
	hub     *sse.Hub
	api     *api.API
	handler http.Handler
	dir     string
	key     []byte
}

func openRooms(kind registry.Kind, producer registry.Producer) (_ *rooms, err error) {
	r := &rooms{key: []byte(rand.Text() + rand.Text())}
	if r.dir, err = os.MkdirTemp("", "afoot-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	secret := filepath.Join(r.dir, "secret")
	if err := os.WriteFile(secret, r.key, 0o600); err != nil {
		return nil, err
	}
	authority, err := auth.New(auth.Config{SecretFile: secret})
	if err != nil {
		return nil, err
	}
	r.service = inmem.New(inmem.Config{MaxTasksPerOwner: 1000, MaxTasks: 20_000, RetainCount: 200_000})
	r.service.AttachController("bench", registry.AllOwners())
	r.service.AttachProducer(kind, producer)
	r.hub = sse.NewHub(sse.Config{})
	r.api, err = api.New(api.Config{Service: r.service, Authority: authority, Hub: r.hub})
	if err != nil {
		return nil, err
	}
	r.handler = r.api.Handler()
	return r, nil
}

func (r *rooms) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var errs []error
	if r.service != nil {
		errs = append(errs, r.service.Close(ctx))
	}
	if r.hub != nil {
		errs = append(errs, r.hub.Close(ctx, "shutdown"))
	}
	if r.api != nil {
		r.api.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

func (r *rooms) token(session string) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sid": session, "sub": "bench", "scope": "tasks:read tasks:write", "exp": time.Now().Add(2 * time.Hour).Unix(),
	}).SignedString(r.key)
}

// call answers one request by the handler, without a socket.
func (r *rooms) call(token, method, path string, body []byte) ([]byte, error) {
	req := httptest.NewRequest(method, "http://localhost"+path, bytes.NewReader(body))
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	if w.Code >= 300 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.Bytes(), nil
}

// instant is a producer of work that has ended before it has begun: what it costs
// is what the registry costs.
type instant struct{}

func (instant) Prepare(context.Context, registry.Spec) (registry.Plan, error) { return instant{}, nil }
func (instant) Label() string                                                 { return "nothing to do" }
func (instant) Cancel(string) error                                           { return nil }
func (instant) Request() (json.RawMessage, error)                             { return json.RawMessage(`{}`), nil }
func (instant) Discard() error                                                { return nil }

func (instant) Start(_ context.Context, launch registry.Launch) (registry.Run, error) {
	launch.Settle(registry.Outcome{Status: registry.StatusCompleted, Detail: "exit code: 0"}, nil)
	return instant{}, nil
}
