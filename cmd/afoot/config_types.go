package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"afoot/producers/proc"
)

// Address is where the daemon listens, in the form that net.Listen takes.
type Address struct {
	Network string // tcp or unix
	Address string // host:port, or the path of the socket
}

// Decode reads host:port or unix:/path.
func (a *Address) Decode(value string) error {
	if path, ok := strings.CutPrefix(value, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return errors.New("the path of a socket must be absolute, such as unix:/run/afoot.sock")
		}
		*a = Address{Network: "unix", Address: filepath.Clean(path)}
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return errors.New("not an address such as 127.0.0.1:7420, [::1]:7420 or unix:/run/afoot.sock")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port from 0 to 65535", port)
	}
	*a = Address{Network: "tcp", Address: value}
	return nil
}

// String gives the form that Decode reads.
func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}

// Local reports whether only this machine can reach the address.
func (a Address) Local() bool {
	if a.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Count is a positive number of things.
type Count int

// Decode reads a decimal number from 1 on.
func (c *Count) Decode(value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 {
		return errors.New("not a whole number from 1 on")
	}
	*c = Count(n)
	return nil
}

// Size is a positive number of bytes.
type Size int64

// Decode reads a number of bytes with or without a unit, such as 65536, 64KiB or
// 10MB.
func (s *Size) Decode(value string) error {
	n, err := humanize.ParseBytes(value)
	if err != nil || n < 1 || n > math.MaxInt64 {
		return errors.New("not a size such as 65536, 64KiB or 10MB")
	}
	*s = Size(n)
	return nil
}

// Sync is what an answer waits for.
type Sync string

// The kinds of sync.
const (
	SyncNormal Sync = "normal"
	SyncFull   Sync = "full"
)

// Decode reads normal or full.
func (s *Sync) Decode(value string) error {
	switch got := Sync(strings.ToLower(value)); got {
	case SyncNormal, SyncFull:
		*s = got
		return nil
	default:
		return errors.New("neither normal nor full")
	}
}

// Net is how the processes of a task are found.
type Net string

// Decode reads auto, cgroup, subreaper or group.
func (n *Net) Decode(value string) error {
	switch got := strings.ToLower(value); got {
	case "auto", "cgroup", "subreaper", "group":
		*n = Net(got)
		return nil
	default:
		return errors.New("none of auto, cgroup, subreaper and group")
	}
}

// RunAs is whom tasks run as; nil: the daemon's own user.
type RunAs struct{ User *proc.User }

// Decode reads uid:gid.
func (r *RunAs) Decode(value string) error {
	owner, group, _ := strings.Cut(value, ":")
	uid, err := strconv.ParseUint(owner, 10, 32)
	gid, groupErr := strconv.ParseUint(group, 10, 32)
	// The highest number stands for nobody in system calls.
	if err != nil || groupErr != nil || max(uid, gid) == math.MaxUint32 {
		return errors.New("not a user and a group by number, such as 1000:1000")
	}
	r.User = &proc.User{UID: uint32(uid), GID: uint32(gid)}
	return nil
}

// home is the home directory of whom tasks run as; "" if there is none.
func (r RunAs) home() string {
	if r.User == nil {
		home, _ := os.UserHomeDir()
		return home
	}
	known, err := user.LookupId(strconv.FormatUint(uint64(r.User.UID), 10))
	if err != nil {
		return ""
	}
	return known.HomeDir
}

// LogFormat is how log lines are written.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Decode reads text or json.
func (f *LogFormat) Decode(value string) error {
	switch got := LogFormat(strings.ToLower(value)); got {
	case LogText, LogJSON:
		*f = got
		return nil
	default:
		return errors.New("neither text nor json")
	}
}
