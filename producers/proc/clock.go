package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock gives a moment in nanoseconds of the system's own clock, which no exec and no
// change of the date moves; the zero time is 0.
func Clock(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return monotonic() + int64(time.Until(t))
}

// Moment is the reverse of [Clock].
func Moment(clock int64) time.Time {
	if clock == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(clock - monotonic()))
}

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // never fails
	return now.Nano()
}
