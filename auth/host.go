package auth

import (
	"net/netip"
	"strconv"
	"strings"
)

// maxHost bounds a host with its port: 253 for a name, a dot, and ":65535".
const maxHost = 260

// splitHost reads the value of a Host header: a name, an IPv4 address or an IPv6
// address in brackets, and perhaps a port. The name comes back in lower case,
// without one trailing dot; an IPv6 address without brackets in its shortest form.
func splitHost(s string) (name, port string, ok bool) {
	if s == "" || len(s) > maxHost {
		return "", "", false
	}
	if s[0] == '[' {
		return splitIPv6(s)
	}
	name, port, _ = strings.Cut(s, ":")
	name, ok = hostName(name)
	if !ok || !goodPort(port) {
		return "", "", false
	}
	return name, port, true
}

func splitIPv6(s string) (name, port string, ok bool) {
	inside, rest, closed := strings.Cut(s[1:], "]")
	if !closed {
		return "", "", false
	}
	addr, err := netip.ParseAddr(inside)
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", "", false
	}
	if rest != "" {
		if rest[0] != ':' || !goodPort(rest[1:]) {
			return "", "", false
		}
		port = rest[1:]
	}
	return addr.String(), port, true
}

// hostName brings a name or an IPv4 address into its one form. Characters that
// could mean something else to somebody else ("@", "/", "%", spaces, non-ASCII)
// are refused.
func hostName(s string) (string, bool) {
	s = strings.TrimSuffix(s, ".")
	if s == "" || s[0] == '.' || strings.HasSuffix(s, ".") || strings.Contains(s, "..") {
		return "", false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return "", false
		}
	}
	return strings.ToLower(s), true
}

// goodPort takes no port too, which a Host may have after its colon.
func goodPort(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	if s == "" {
		return true
	}
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// isLoopback reports whether a name in its one form is this machine: localhost,
// 127.0.0.0/8 in plain dotted form, or ::1.
func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	return addr.Is4() && addr.IsLoopback() || addr == netip.IPv6Loopback()
}

// listedHost reads an entry of [Doors].Hosts, where an IPv6 address may also
// stand without brackets.
func listedHost(entry string) (name string, ok bool) {
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Is6() && addr.Zone() == "" {
		return addr.String(), true
	}
	name, _, ok = splitHost(entry)
	return name, ok
}
