package webhook

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPostIsSignedAndSaysNoSecret(t *testing.T) {
	r := receive(t, nil)
	var log words
	p := running(t, Config{Hosts: []string{r.host()}, Logger: log.logger()})
	h := added(t, p, alice, r.URL+"/hook?token=hidden")
	require.Regexp(t, `^webhook-[a-z2-7]{26}$`, h.ID)
	p.Notice(alice, about("bash-1"))
	got := r.next(t)
	require.Equal(t, letter{id: "msg_bash-1", body: string(about("bash-1").Body)}, got)
	h = settled(t, p, alice, func(h Hook) bool { return h.Pending == 0 })
	require.Empty(t, h.LastError)
	require.False(t, h.Waiting)
	p.Close(over())
	require.Contains(t, log.String(), "notice posted")
	require.NotContains(t, log.String(), secret[6:20])
	require.NotContains(t, log.String(), "hidden")
}

func TestSecretsThatAreNone(t *testing.T) {
	p := paused(t, Config{Hosts: []string{"localhost"}})
	for _, bad := range []string{
		"", "whsec_", "geheim", secret[6:], "whsec_c2hvcnQ=", "whsec_!!!!" + secret[10:], "whsec_" + strings.Repeat("QUFB", 22),
	} {
		_, err := p.Add(t.Context(), alice, "http://localhost/", bad, nil)
		var wrong *InvalidError
		require.ErrorAs(t, err, &wrong, bad)
		require.Equal(t, "secret", wrong.Member)
		if len(bad) > 6 {
			require.NotContains(t, err.Error(), bad[6:])
		}
	}
	require.Empty(t, p.List(alice))
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	second := receive(t, nil)
	first := receive(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, second.URL, http.StatusTemporaryRedirect)
	})
	p := running(t, Config{Hosts: []string{"127.0.0.1"}}) // any port
	added(t, p, alice, first.URL)
	p.Notice(alice, about("bash-1"))
	first.next(t)
	h := settled(t, p, alice, func(h Hook) bool { return h.LastError != "" })
	require.Equal(t, "answered 307", h.LastError)
	require.Equal(t, 1, h.Pending)
	require.Empty(t, second.letters)
}

// names is a DNS server of one address for every name.
func names(address net.IP) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(server, size[:]); err != nil {
					return
				}
				q := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(server, q); err != nil {
					return
				}
				end := 12
				for q[end] != 0 {
					end += int(q[end]) + 1
				}
				end += 5 // the root label, type and class
				answer := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
				if kind := binary.BigEndian.Uint16(q[end-4:]); kind == 1 && len(address) == 4 || kind == 28 && len(address) == 16 {
					answer[7] = 1
					answer = append(answer, 0xc0, 12, q[end-4], q[end-3], 0, 1, 0, 0, 0, 1, 0, byte(len(address)))
					answer = append(answer, address...)
				}
				server.Write(binary.BigEndian.AppendUint16(nil, uint16(len(answer))))
				server.Write(answer)
			}
		}()
		return client, nil
	}}
}

// The name is listed, and leads where nothing may be posted to.
func TestResolvedAddressIsChecked(t *testing.T) {
	r := receive(t, nil)
	_, port, _ := net.SplitHostPort(r.host())
	for _, address := range []net.IP{
		net.ParseIP("127.0.0.1").To4(), net.ParseIP("0.0.0.0").To4(), net.ParseIP("::ffff:127.0.0.1").To16(), net.ParseIP("::1"), net.ParseIP("10.0.0.1").To4(),
		net.ParseIP("169.254.169.254").To4(), net.ParseIP("100.64.0.1").To4(), net.ParseIP("64:ff9b::7f00:1"),
	} {
		outcomes := make(chan Outcome, 10)
		p := running(t, Config{
			Hosts: []string{"hooks.example.com"}, Resolver: names(address),
			Posted: func(o Outcome) { outcomes <- o },
		})
		added(t, p, alice, "http://hooks.example.com:"+port+"/")
		p.Notice(alice, about("bash-1"))
		require.Equal(t, Forbidden, <-outcomes, address)
		h := settled(t, p, alice, func(h Hook) bool { return h.LastError != "" })
		require.Contains(t, h.LastError, "may not be posted to")
		require.Equal(t, 1, h.Pending, "kept")
		p.Close(over())
	}
	require.Empty(t, r.letters)

	// Once the address is listed too, it may.
	p := running(t, Config{Hosts: []string{"hooks.example.com", "127.0.0.1"}, Resolver: names(net.IP{127, 0, 0, 1})})
	added(t, p, alice, "http://hooks.example.com:"+port+"/")
	p.Notice(alice, about("bash-1"))
	r.next(t)
}

func TestLocalhostMayBeListed(t *testing.T) {
	r := receive(t, nil)
	_, port, _ := net.SplitHostPort(r.host())
	p := running(t, Config{Hosts: []string{"localhost"}})
	added(t, p, alice, "http://localhost:"+port+"/")
	p.Notice(alice, about("bash-1"))
	r.next(t)
}

// A proxy would connect where it likes.
func TestProxiesAreIgnored(t *testing.T) {
	proxy := receive(t, nil)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	p := running(t, Config{Hosts: []string{"hooks.example.com", "10.0.0.1"}, Resolver: names(net.IP{127, 0, 0, 1})})
	require.Nil(t, p.client.Transport.(*http.Transport).Proxy)
	added(t, p, alice, "http://hooks.example.com/")
	p.Notice(alice, about("bash-1"))
	settled(t, p, alice, func(h Hook) bool { return h.LastError != "" })
	require.Empty(t, proxy.letters)
}

func TestCertificatesAreVerified(t *testing.T) {
	r := &receiver{letters: make(chan letter, 10)}
	server := httptest.NewTLSServer(r)
	defer server.Close()
	r.Server = server
	p := running(t, Config{Hosts: []string{"127.0.0.1"}})
	added(t, p, alice, server.URL)
	p.Notice(alice, about("bash-1"))
	h := settled(t, p, alice, func(h Hook) bool { return h.LastError != "" })
	require.Contains(t, h.LastError, "certificate")
	require.Empty(t, r.letters)

	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	p = running(t, Config{Hosts: []string{"127.0.0.1"}, RootCAs: roots})
	added(t, p, alice, server.URL)
	p.Notice(alice, about("bash-1"))
	r.next(t)
}

func TestReceiverThatHangs(t *testing.T) {
	r := receive(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := running(t, Config{Hosts: []string{"127.0.0.1"}, Timeout: 50 * time.Millisecond})
	added(t, p, alice, r.URL)
	p.Notice(alice, about("bash-1"))
	h := settled(t, p, alice, func(h Hook) bool { return h.LastError != "" })
	require.Equal(t, "not answered in time", h.LastError)
}

// What a receiver says is not kept, however much it is.
func TestReceiverThatTalks(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	p := running(t, Config{Hosts: []string{"127.0.0.1"}})
	added(t, p, alice, r.URL)
	p.Notice(alice, about("bash-1"))
	settled(t, p, alice, func(h Hook) bool { return h.Pending == 0 })
}

// A host that is taken off the list is not posted to any more; put back, it is.
func TestListChangesMeanwhile(t *testing.T) {
	r := receive(t, nil)
	p := running(t, Config{Hosts: []string{r.host()}})
	added(t, p, alice, r.URL)
	require.NoError(t, p.SetLimits(Limits{}))
	p.Notice(alice, about("bash-1"))
	h := settled(t, p, alice, func(h Hook) bool { return h.LastError != "" })
	require.Contains(t, h.LastError, "AFOOT_WEBHOOK_HOSTS")
	require.Empty(t, r.letters)
	require.Error(t, p.SetLimits(Limits{Hosts: []string{"http://x"}}))
	require.NoError(t, p.SetLimits(Limits{Hosts: []string{r.host()}}))
	r.next(t) // after its backoff
}
