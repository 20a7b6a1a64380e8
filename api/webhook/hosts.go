package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// hosts is what may be posted to.
type hosts []place

// place is one listed host: a name, or addresses. Port 0 is every port.
type place struct {
	name   string
	within netip.Prefix
	port   uint16
}

// CheckHosts says what is wrong with a list of hosts. A host is a name or an address,
// with a port if only that one is meant, or a range of addresses such as 10.0.0.0/8.
// Names may only lead to public addresses, or to addresses that are listed too; but
// localhost may lead to loopback.
func CheckHosts(list []string) error {
	_, err := parseHosts(list)
	return err
}

func parseHosts(list []string) (hosts, error) {
	var all hosts
	for _, text := range list {
		p, err := parsePlace(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no host to post to: %w", text, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func parsePlace(text string) (place, error) {
	if strings.Contains(text, "/") {
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return place{}, errors.New("it must be host, host:port or a range such as 10.0.0.0/8")
		}
		return place{within: r.Masked()}, nil
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil {
		return addressPlace(a, 0)
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return addressPlace(ap.Addr(), ap.Port())
	}
	host, port, hasPort := strings.Cut(text, ":")
	name, err := plainName(host)
	if err != nil {
		return place{}, err
	}
	p := place{name: name}
	if hasPort {
		if p.port, err = parsePort(port); err != nil {
			return place{}, err
		}
	}
	return p, nil
}

func addressPlace(a netip.Addr, port uint16) (place, error) {
	if a.Zone() != "" {
		return place{}, errors.New("an address can't have a zone")
	}
	a = a.Unmap()
	return place{within: netip.PrefixFrom(a, a.BitLen()), port: port}, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '+' {
		return 0, fmt.Errorf("%q is no port", text)
	}
	return uint16(n), nil
}

// plainName gives a DNS name as it is compared. What systems would read as an address
// in an unusual form (127.1, 0x7f.1) is none.
func plainName(text string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", errors.New("it has no valid name")
		}
	}
	if len(name) > 253 || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", errors.New("it has no valid name")
	}
	return name, nil
}

// target is where a URL leads: a name, or an address.
type target struct {
	name string
	addr netip.Addr
	port uint16
}

func (t target) literal() bool { return t.addr.IsValid() }

func newTarget(host, port string) (t target, err error) {
	if t.port, err = parsePort(port); err != nil {
		return t, err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return t, errors.New("its address has a zone")
		}
		t.addr = a.Unmap()
		return t, nil
	}
	t.name, err = plainName(host)
	return t, err
}

func (p place) covers(a netip.Addr, port uint16) bool {
	return p.within.IsValid() && p.within.Contains(a) && (p.port == 0 || p.port == port)
}

// list reports whether a target is listed.
func (h hosts) list(t target) bool {
	for _, p := range h {
		if t.literal() && p.covers(t.addr, t.port) {
			return true
		}
		if !t.literal() && p.name == t.name && (p.port == 0 || p.port == t.port) {
			return true
		}
	}
	return false
}

// permit reports whether a listed target may lead to an address.
func (h hosts) permit(t target, a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if public(a) || t.name == "localhost" && a.IsLoopback() {
		return true
	}
	for _, p := range h {
		if p.covers(a, t.port) {
			return true
		}
	}
	return false
}

// special are the addresses within what is routed that lead to nobody in particular, or
// to an address inside of them.
func special() [17]string {
	return [...]string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	}
}

// public reports whether an address is one that anybody on the Internet has: of IPv6
// only 2000::/3, so that no form with an IPv4 address inside (mapped, compatible, NAT64)
// is.
func public(a netip.Addr) bool {
	if a.Is4() && a.As4()[0] >= 224 || a.Is6() && a.As16()[0]&0xe0 != 0x20 {
		return false
	}
	for _, text := range special() {
		if netip.MustParsePrefix(text).Contains(a) {
			return false
		}
	}
	return a.IsValid()
}
