package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"afoot/registry/registrytest"
)

func TestLogIsCompressedOnRequest(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("all work and no play\n", 10_000)
	work := w.start(registrytest.Script{})
	work.Output.Append("dropped" + text)
	work.Output.Drop(len("dropped"))
	for range 2 { // running, and ended
		for _, c := range []struct {
			accept string
			zipped bool
		}{
			{"gzip", true},
			{"deflate, gzip;q=0.5, br", true},
			{"x-gzip", true},
			{"*", true},
			{"identity;q=0.5, gzip;q=0.5", true},
			{"gzip;q=0", false},
			{"gzip;q=0, *", false},
			{"*;q=0", false},
			{"identity", false},
			{"identity, gzip;q=0.5", false},
			{"gzip;q=2", false},
			{"br, nonsense/;", false},
		} {
			a := w.get("/tasks/bash-1/log", "Accept-Encoding", c.accept).ok(http.StatusOK)
			head := w.call(http.MethodHead, "/tasks/bash-1/log", "", "Accept-Encoding", c.accept).ok(http.StatusOK)
			for _, h := range []http.Header{a.header, head.header} {
				w.is.Contains(h.Values("Vary"), "Accept-Encoding", c.accept)
				w.is.Equal(`attachment; filename="bash-1.log"`, h.Get("Content-Disposition"))
				w.is.Equal("7", h.Get("Afoot-Offset"))
				w.is.Equal(map[bool]string{true: "gzip"}[c.zipped], h.Get("Content-Encoding"), c.accept)
			}
			w.is.Equal(c.zipped, head.header.Get("Content-Length") == "")
			body := a.body
			if c.zipped {
				w.is.Less(len(body), len(text)/10)
				z, err := gzip.NewReader(bytes.NewReader(body))
				w.is.NoError(err)
				body, err = io.ReadAll(z)
				w.is.NoError(err)
			}
			w.is.Equal(text, string(body), c.accept)
		}
		work.Complete("exit code: 0")
	}
	for _, c := range []struct {
		query, rng string
		status     int
	}{{"", "bytes=7-", 206}, {"", "bytes=10-20", 206}, {"?follow=true", "bytes=7-", 206}} {
		a := w.get("/tasks/bash-1/log"+c.query, "Accept-Encoding", "gzip", "Range", c.rng).ok(c.status)
		w.is.Empty(a.header.Get("Content-Encoding"), "%+v", c)
		w.is.NotEmpty(a.header.Get("Content-Length"))
	}
	w.ended("short")
	w.is.Empty(w.get("/tasks/bash-2/log", "Accept-Encoding", "gzip").header.Get("Content-Encoding"))
	w.start(registrytest.Script{}).Output.Append(text)
	f := w.get("/tasks/bash-1/log?stream=stdout", "Accept-Encoding", "gzip").ok(http.StatusOK)
	w.is.Equal("gzip", f.header.Get("Content-Encoding"))
}

// TestFollowedLogIsNeverCompressed: it would come late.
func TestFollowedLogIsNeverCompressed(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	f := w.follow("Accept-Encoding", "gzip")
	w.is.Empty(f.res.Header.Get("Content-Encoding"))
	text := strings.Repeat("x", 4096)
	work.Output.Append(text)
	f.reads(text)
}
