package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// openJWKS opens the configured key set: a URL if it has a scheme, else a file.
func openJWKS(cfg Config) (keySource, error) {
	scheme, _, isURL := strings.Cut(cfg.JWKS, "://")
	if !isURL {
		return openJWKSFile(cfg)
	}
	if scheme = strings.ToLower(scheme); scheme != "http" && scheme != "https" {
		return nil, errors.New("the JWKS must be a file or an http or https URL: change AFOOT_JWKS")
	}
	u, err := url.Parse(cfg.JWKS)
	if err != nil || u.Host == "" {
		// The parser's error would repeat a password in the URL.
		return nil, errors.New("the JWKS URL is malformed: change AFOOT_JWKS")
	}
	return openJWKSURL(cfg, u), nil
}

// jwksFile is a key set in a file, read again when it has changed.
type jwksFile struct {
	watch

	path string
	log  *slog.Logger
	ring atomic.Pointer[keyring]
}

func openJWKSFile(cfg Config) (keySource, error) {
	f := &jwksFile{path: cfg.JWKS, log: cfg.Logger}
	f.watch = watch{
		source: cfg.JWKS,
		paths:  []string{cfg.JWKS},
		stat:   os.Stat, // Public keys may come through a link.
		load:   f.loadFile,
		log:    cfg.Logger,
	}
	if err := f.start(cfg.Now()); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *jwksFile) keys() *keyring { return f.ring.Load() }

func (f *jwksFile) missed(_ context.Context, now time.Time, _ error) { f.refresh(now) }

func (f *jwksFile) begin() {}

func (f *jwksFile) loadFile(now time.Time) error {
	data, err := readPublic(f.path)
	if err != nil {
		return err
	}
	next, err := parseKeyset(data, f.path, f.log)
	if err == nil && len(next.byID) == 0 {
		err = errors.New("it has no key for RS256, ES256 or EdDSA")
	}
	if err != nil {
		return fmt.Errorf("the JWKS file %s can't be used: %w", f.path, err)
	}
	if old := f.ring.Load(); old != nil {
		succeed(old, next, now)
	}
	f.ring.Store(next)
	return nil
}

// readPublic reads a file of public keys. Everybody may read it, not everybody
// may write it.
func readPublic(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the JWKS file %s can't be opened: %w", path, errors.Unwrap(err))
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("the JWKS file %s can't be examined: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the JWKS file %s is not a regular file: name a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o002 != 0 {
		return nil, fmt.Errorf("the JWKS file %s may be written by everybody (mode %04o): run chmod o-w %s", path, perm, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyset+1))
	if err != nil {
		return nil, fmt.Errorf("the JWKS file %s can't be read: %w", path, err)
	}
	if len(data) > maxKeyset {
		return nil, fmt.Errorf("the JWKS file %s is larger than %d bytes", path, maxKeyset)
	}
	return data, nil
}
