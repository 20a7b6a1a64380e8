package output

import "golang.org/x/sys/unix"

// A sealed file is none that can be read from its bytes alone, and nothing is noted of
// where they lie.
const (
	plainMode  = 0o600
	sealedMode = 0o400
)

// counters gives what is true now. It is the pump's, or called after its end.
func (l *Log) counters() counters {
	return counters{
		written: l.written.Load(), gone: l.gone.Load(), first: l.first.Load(),
		base: l.place.base, ring: l.place.ring, size: l.place.size,
	}
}

// note writes down what can't be seen from the file, before anybody relies on it. It is
// the pump's. With binding, what was noted before is not true any more as soon as the
// next byte is written: if it can't be replaced, the file is sealed, so that after a
// crash nobody takes other bytes for the log's.
func (l *Log) note(now counters, binding bool) {
	l.bent = true
	err := l.era.slots.write(&l.slot, &slot{seq: l.seq, use: uint64(l.use), counters: now})
	switch {
	case err == nil && l.sealed:
		l.sealed = l.setMode(plainMode) != nil
	case err != nil && binding && !l.sealed:
		l.store.logger.Warn("where a log's bytes lie can't be noted; a crash would lose them",
			"file", l.era.name(l.seq, logSuffix), "error", err.Error())
		l.sealed = l.setMode(sealedMode) == nil
	}
}

func (l *Log) setMode(mode uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return unix.Fchmod(int(l.file.Fd()), mode)
}
