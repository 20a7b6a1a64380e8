package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed page/*.html page/*.css page/*.js
var files embed.FS

// policy lets the page load its own scripts and styles and call its own origin,
// and nothing else. Trusted types forbid every sink that parses text as markup,
// so that what a task prints can only ever become text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// asset is one file with everything an answer needs.
type asset struct {
	name, media, tag string
	body             []byte
}

// Handler serves the page at "/" and its files beside it; everything else is
// 404, every method but GET and HEAD 405. Answers are revalidated by ETag each
// time, so that a new binary is never paired with an old page.
func Handler() http.Handler {
	assets := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard(w.Header())
		found, ok := assets[r.URL.Path]
		if !ok {
			http.Error(w, "There is no such page.", http.StatusNotFound)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "The page can only be read.", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", found.media)
		w.Header().Set("ETag", found.tag)
		http.ServeContent(w, r, found.name, time.Time{}, bytes.NewReader(found.body))
	})
}

// guard sets the headers that every answer of this room carries.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
}

// load maps each path to its file. The files are part of the binary: one that
// cannot be read is a broken build, not a state to handle.
func load() map[string]asset {
	names, err := fs.Glob(files, "page/*")
	if err != nil {
		panic(err)
	}
	assets := make(map[string]asset, len(names))
	for _, name := range names {
		body, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		assets[address(name)] = asset{
			name:  path.Base(name),
			media: media(name),
			tag:   `"` + hex.EncodeToString(sum[:12]) + `"`,
			body:  body,
		}
	}
	return assets
}

// address is the path under which a file is served.
func address(name string) string {
	if base := path.Base(name); base != "index.html" {
		return "/" + base
	}
	return "/"
}

// media is said here and not by the machine's own table, which may lack a type
// or hold a wrong one; with nosniff that would break the page.
func media(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	default:
		return "text/javascript; charset=utf-8"
	}
}
