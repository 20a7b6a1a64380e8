package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"afoot/api/client"
	"afoot/auth"
)

// Lifetime of the tokens that commands make for themselves: renewed at half of
// it, so that a long one never comes to the end.
const ownTokenTTL = time.Hour

// remote is the daemon as a command sees it.
type remote struct {
	*client.Client
	// url is where a browser finds the daemon.
	url string
	// near says that the daemon runs on this machine and sees the same files.
	near     bool
	patience *patience
	// close ends idle connections and what makes the tokens.
	close func() error
}

// connect finds the daemon: the one named by --addr, else the one that left its
// address in the state directory. It makes no call yet.
func (a *app) connect() (*remote, error) {
	if a.addr != "" {
		return a.connectFar()
	}
	if a.cfg.inMemory() {
		return nil, exitError{code: exitNoDaemon, err: fmt.Errorf("a daemon with %[1]s_STATE_DIR=%[2]s leaves nothing by which it can be found: name it with --addr, and give its token in %[1]s_TOKEN", envPrefix, memoryState)}
	}
	info, err := readListenInfo(a.cfg.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exitError{code: exitNoDaemon, err: fmt.Errorf("no daemon runs with the state directory %s: start one with `afoot serve`, or name one with --addr and AFOOT_TOKEN", a.cfg.StateDir)}
	}
	if err != nil {
		return nil, err
	}
	transport, err := nearTransport(info)
	if err != nil {
		return nil, err
	}
	if a.cfg.Token != "" {
		return a.dial(transport, info.URL, true, fixedToken(a.cfg.Token), nil)
	}
	authority, err := openKeys(auth.Config{SecretFile: info.SecretFile, Issuer: info.Issuer, Audience: info.Audience})
	if err != nil {
		return nil, err
	}
	return a.dial(transport, info.URL, true, ownToken(authority, a.sessionName()), authority.Close)
}

// connectFar talks to a daemon whose secret is not here. A token made from the
// secret of a daemon on this machine is never sent elsewhere.
func (a *app) connectFar() (*remote, error) {
	if a.cfg.Token == "" {
		return nil, usageErrorf("--addr needs a token of that daemon in AFOOT_TOKEN")
	}
	transport := newTransport()
	url := strings.TrimSuffix(a.addr, "/")
	if path, ok := strings.CutPrefix(url, "unix:"); ok {
		transport.DialContext = dialSocket(path)
		url = "http://localhost"
	} else if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	return a.dial(transport, url, false, fixedToken(a.cfg.Token), nil)
}

// dial builds the client. Every request asks source for its token.
func (a *app) dial(transport *http.Transport, url string, near bool, source func() (string, error), done func() error) (*remote, error) {
	if a.cfg.Token != "" && a.session != "" {
		return nil, usageErrorf("--session and AFOOT_TOKEN do not go together: the token says the session")
	}
	authorize := func(_ context.Context, req *http.Request) error {
		token, err := source()
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	watch := &patience{base: transport}
	c, err := client.NewClient(url, client.WithHTTPClient(&http.Client{Transport: watch}), client.WithRequestEditorFn(authorize))
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", url, err)
	}
	return &remote{Client: c, url: url, near: near, patience: watch, close: func() error {
		transport.CloseIdleConnections()
		if done != nil {
			return done()
		}
		return nil
	}}, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConnsPerHost:   4,
		DisableCompression:    true,
		ResponseHeaderTimeout: 0, // waits are long on purpose
	}
}

// nearTransport reaches a daemon of this machine. Over TLS it accepts exactly
// the certificate that the daemon was started with, whatever names that has.
func nearTransport(info ListenInfo) (*http.Transport, error) {
	transport := newTransport()
	transport.Proxy = nil
	if path, ok := strings.CutPrefix(info.Addr, "unix:"); ok {
		transport.DialContext = dialSocket(path)
	}
	if info.TLSCert == "" {
		return transport, nil
	}
	text, err := os.ReadFile(info.TLSCert)
	if err != nil {
		return nil, fmt.Errorf("the daemon's certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("the daemon's certificate: %s holds no PEM block", info.TLSCert)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the daemon's certificate: %w", err)
	}
	transport.TLSClientConfig = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection below is stricter
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !state.PeerCertificates[0].Equal(leaf) {
				return errors.New("the daemon shows another certificate than the one in " + info.TLSCert)
			}
			return nil
		},
	}
	return transport, nil
}

func dialSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "unix", path)
	}
}

func fixedToken(token string) func() (string, error) {
	return func() (string, error) { return token, nil }
}

// ownToken makes tokens of a session from the daemon's secret, each used for
// half of its life.
func ownToken(authority *auth.Authority, session string) func() (string, error) {
	var (
		mu    sync.Mutex
		token string
		renew time.Time
	)
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); token == "" || !now.Before(renew) {
			fresh, _, err := authority.Mint(auth.Claims{Session: session, Scopes: auth.TasksRead | auth.TasksWrite}, ownTokenTTL)
			if err != nil {
				return "", fmt.Errorf("make a token for the session %s: %w", session, err)
			}
			token, renew = fresh, now.Add(ownTokenTTL/2)
		}
		return token, nil
	}
}

// decode reads the JSON of a success, and makes an error of everything else.
func decode[T any](res *http.Response, err error) (T, error) {
	var value T
	res, err = client.Check(res, err)
	if err != nil {
		return value, noDaemon(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&value); err != nil {
		return value, fmt.Errorf("answer of the daemon: %w", err)
	}
	return value, nil
}

// discard is for answers without a body.
func discard(res *http.Response, err error) error {
	res, err = client.Check(res, err)
	if err != nil {
		return noDaemon(err)
	}
	return res.Body.Close()
}
