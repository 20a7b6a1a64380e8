package auth

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// FuzzHost holds the parser against the standard library's: whatever passes as
// loopback is that for net/url too, and the one form is stable.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"localhost", "LOCALHOST.:80", "127.0.0.1:7420", "[::1]:1", "[::ffff:127.0.0.1]", "localhost.evil.example", "user@localhost", "a_b", "[::1%25lo]", "127.1", ":00", ""} {
		f.Add(s)
	}
	plain := regexp.MustCompile(`^[a-z0-9._:-]+$`)
	f.Fuzz(func(t *testing.T, s string) {
		name, port, ok := splitHost(s)
		if !ok {
			if name != "" || port != "" {
				t.Fatalf("%q is refused and still gives %q %q", s, name, port)
			}
			return
		}
		if !plain.MatchString(name) {
			t.Fatalf("%q gives the name %q", s, name)
		}
		u, err := url.Parse("http://" + s + "/")
		if err != nil || u.User != nil || u.Path != "/" || u.Port() != port {
			t.Fatalf("%q passes, but a URL with it is %v (%v)", s, u, err)
		}
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if addr, err := netip.ParseAddr(host); err == nil {
			host = addr.String()
		}
		if host != name {
			t.Fatalf("%q gives %q, net/url sees %q", s, name, host)
		}
		again := name
		if strings.Contains(name, ":") {
			again = "[" + name + "]"
		}
		if twice, _, ok := splitHost(again); !ok || twice != name {
			t.Fatalf("%q gives %q, and that gives %q", s, name, twice)
		}
		if listed, ok := listedHost(s); !ok || listed != name {
			t.Fatalf("%q is %q as a Host and %q as an entry", s, name, listed)
		}
	})
}

// FuzzOrigin: what is an origin has no more parts than one, and its one form is
// stable.
func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"null", "http://localhost:7420", "HTTPS://UI.Example:0443", "http://a@b", "http://a/", "chrome-extension://abc", "http://[::1]", "://x", "http://x:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, ok := parseOrigin(s)
		if !ok {
			return
		}
		u, err := url.Parse(s)
		if err != nil || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
			t.Fatalf("%q passes, but the URL is %#v (%v)", s, u, err)
		}
		host := o.host
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		text := o.scheme + "://" + host
		if o.port != "" {
			text += ":" + o.port
		}
		if twice, ok := parseOrigin(text); !ok || twice != o {
			t.Fatalf("%q gives %v, and that gives %v", s, o, twice)
		}
	})
}

// FuzzToken: no text may panic the verifier, and only the one good token passes.
func FuzzToken(f *testing.F) {
	r := newRig(f)
	good := r.token(f, nil)
	for _, s := range []string{good, "..", "a.b.c", raw(f, r.secret, `{"alg":"HS256"}`, `{"exp":1e999}`), strings.Repeat("a", MaxTokenBytes+1), good[:len(good)-1]} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := r.Verify(s); err == nil && s != good {
			t.Fatalf("%q passes", s)
		} else if err != nil {
			requireKind(t, KindUnauthenticated, err)
		}
	})
}
