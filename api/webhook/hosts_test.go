package webhook

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", "http://example.com", "example.com/path", "*.example.com", "user@example.com", "example.com:", "example.com:0",
		"example.com:99999", "example.com:+80", "127.1", "0x7f000001", "2130706433", "a..b", "[::1]:", "fe80::1%eth0", "10.0.0.0/33",
		strings.Repeat("a", 64) + ".com",
	} {
		require.Error(t, CheckHosts([]string{"example.com", text}), text)
	}
	require.NoError(t, CheckHosts(nil))
}

func TestURLs(t *testing.T) {
	allowed, err := parseHosts([]string{
		"hooks.example.com", "Port.Example.com.:8443", "127.0.0.1:9000", "localhost", "[::1]:7", "10.1.0.0/16", "2001:db8::7",
	})
	require.NoError(t, err)
	for _, good := range []string{
		"https://hooks.example.com", "http://HOOKS.example.COM./x?y=z", "https://hooks.example.com:1234/", "https://port.example.com:8443/",
		"http://127.0.0.1:9000/", "http://[::ffff:127.0.0.1]:9000/", "http://localhost:1/", "http://[::1]:7/", "http://10.1.2.3/", "http://[2001:db8::7]/",
	} {
		require.NoError(t, checkURL(good, allowed), good)
		require.Error(t, checkURL(good, nil), "nothing is listed: %s", good)
	}
	for _, bad := range []string{
		"", "hooks.example.com", "//hooks.example.com/", "ftp://hooks.example.com/", "file:///etc/passwd", "unix:///x", "http:hooks.example.com", "http:///x",
		"https://user@hooks.example.com/", "https://user:pass@hooks.example.com/", "https://hooks.example.com@evil.example/",
		"https://hooks.example.com/#x", "https://hooks.example.com/#", "https://hooks.example.com:/", "https://hooks.example.com:0/", "https://hooks.example.com:65536/",
		"https://hooks.example.com.evil.example/", "https://evil.example/", "https://hooks.example.com../", "https://port.example.com/", "https://port.example.com:8444/",
		"http://127.0.0.1:9001/", "http://127.0.0.1/", "http://127.0.0.2:9000/", "http://127.1:9000/", "http://2130706433:9000/", "http://0x7f.1:9000/", "http://0177.0.0.1:9000/",
		"http://0.0.0.0:9000/", "http://[::]:9000/", "http://[64:ff9b::7f00:1]:9000/", "http://[::1]:8/", "http://[::1%25lo]:7/", "http://10.2.0.1/", "http://foo.localhost/",
		"http://169.254.169.254/", "https://hooks.example.com\\@evil.example/", "https://hooks.example.com\n/", "https://höoks.example.com/",
		"https://hooks.example.com/" + strings.Repeat("x", maxURL),
	} {
		err := checkURL(bad, allowed)
		var wrong *InvalidError
		require.ErrorAs(t, err, &wrong, bad)
		require.Equal(t, "url", wrong.Member)
	}
}

func TestAddressesThatAreNobodysInParticular(t *testing.T) {
	allowed, err := parseHosts([]string{"hooks.example.com", "localhost", "127.0.0.7:80", "172.18.0.0/16"})
	require.NoError(t, err)
	name, local := target{name: "hooks.example.com", port: 80}, target{name: "localhost", port: 80}
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "fc00::1", "fd12::1",
		"fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1",
	} {
		a := netip.MustParseAddr(text)
		require.False(t, allowed.permit(name, a), text)
		require.Equal(t, a.Unmap().IsLoopback(), allowed.permit(local, a), "localhost: %s", text)
	}
	for _, text := range []string{"8.8.8.8", "::ffff:8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1"} {
		require.True(t, allowed.permit(name, netip.MustParseAddr(text)), text)
	}
	require.True(t, allowed.permit(name, netip.MustParseAddr("172.18.3.4")), "listed as a range")
	require.True(t, allowed.permit(name, netip.MustParseAddr("127.0.0.7")), "listed")
	name.port = 81
	require.False(t, allowed.permit(name, netip.MustParseAddr("127.0.0.7")), "listed with another port")
}
