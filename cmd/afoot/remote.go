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
	"net/url"
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
	// socket is the path of the socket that it listens on; "" for an address of TCP.
	socket string
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
	source, done := fixedToken(a.cfg.Token), func() error { return nil }
	if a.cfg.Token == "" {
		authority, err := openKeys(auth.Config{SecretFile: info.SecretFile, Issuer: info.Issuer, Audience: info.Audience})
		if err != nil {
			return nil, err
		}
		source, done = ownToken(authority, a.sessionName()), authority.Close
	}
	r, err := a.dial(transport, info.URL, true, source, done)
	if err != nil {
		return nil, errors.Join(err, done())
	}
	r.socket = socketOf(info.Addr)
	return r, nil
}

// socketOf is the path in an address such as unix:/path; "" in any other.
func socketOf(addr string) string {
	path, found := strings.CutPrefix(addr, "unix:")
	if !found {
		return ""
	}
	return path
}

// isWebURL says whether text is a whole address of HTTP.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.HasSuffix(u.Host, ":")
}

// connectFar talks to a daemon whose secret is not here. A token made from the
// secret of a daemon on this machine is never sent elsewhere.
func (a *app) connectFar() (*remote, error) {
	if a.cfg.Token == "" {
		return nil, usageErrorf("--addr needs a token of that daemon in AFOOT_TOKEN")
	}
	transport := newTransport()
	base := strings.TrimSuffix(a.addr, "/")
	socket := socketOf(base)
	if socket != "" {
		transport.DialContext = dialSocket(socket)
		base = "http://localhost"
	} else if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	if !isWebURL(base) {
		return nil, usageErrorf("--addr %q is no address such as 127.0.0.1:7420, https://afoot.example.com or unix:/run/afoot.sock", a.addr)
	}
	r, err := a.dial(transport, base, false, fixedToken(a.cfg.Token), nil)
	if err != nil {
		return nil, err
	}
	r.socket = socket
	return r, nil
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
	watch := &patience{base: comeAgain{transport}}
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
	if path := socketOf(info.Addr); path != "" {
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
				return "", usageErrorf("make a token for the session %s: %w", session, err)
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
