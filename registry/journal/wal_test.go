package journal

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"afoot/registry"
)

const frameSize = frameHeader + usualPage

// dead gives the files of a journal whose process was killed: tasks 1 to known are in
// its database, and n more in its log alone, a transaction each. Ends has the length of
// the log after each of them.
func dead(t *testing.T, known, n int) (path string, ends []int64) {
	t.Helper()
	j := opened(t, Config{Path: at(t)})
	for i := range known {
		j.Append(typical(uint64(i+1)), registry.CounterRow{Kind: "bash", Last: uint64(i + 1)})
	}
	synced(t, j)
	require.NoError(t, j.do(t.Context(), func(c *db) error { return c.checkpoint(sqlite3.CHECKPOINT_PASSIVE) }))
	for i := known; i < known+n; i++ {
		synced(t, j, typical(uint64(i+1)), registry.CounterRow{Kind: "bash", Last: uint64(i + 1)})
		pages := 0
		require.NoError(t, j.do(t.Context(), func(c *db) error { pages = c.pages; return nil }))
		ends = append(ends, walHeader+int64(pages)*frameSize)
	}
	return copied(t, j.cfg.Path, t.TempDir()), ends
}

func edited(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, change(b), 0o600))
}

// again gives a copy of the files, which may be spoilt.
func again(t *testing.T, path string) string {
	t.Helper()
	return copied(t, path, t.TempDir())
}

func TestDamagedLogIsRefused(t *testing.T) {
	path, ends := dead(t, 20, 10)
	end := ends[len(ends)-1]
	last := ends[len(ends)-2] // what is behind it may be the end of a crash
	var places []int64
	for at := int64(0); at < last; at += 6007 {
		places = append(places, at)
	}
	for at := int64(walHeader); at < last; at += 11 * frameSize {
		places = append(places, at, at+4, at+8, at+16, at+frameHeader-8, at+frameHeader)
	}
	for i, at := range places {
		for _, by := range [][]byte{bytes.Repeat([]byte{0xff}, 16), make([]byte, 4096)} {
			spoilt := again(t, path)
			edited(t, spoilt+walSuffix, func(b []byte) []byte {
				b = b[:end]
				was := slices.Clone(b)
				copy(b[at:last], by)
				if bytes.Equal(was, b) {
					return nil // that is what was there
				}
				return b
			})
			if stateSize(t, spoilt+walSuffix) == 0 {
				continue
			}
			before := files(t, spoilt)
			_, err := Open(Config{Path: spoilt})
			var damage *DamageError
			require.ErrorAs(t, err, &damage, "%d bytes at %d of %d", len(by), at, end)
			require.True(t, damage.Log)
			for _, advice := range []string{spoilt, `"afoot doctor"`, `"afoot backup"`, "--accept-loss"} {
				require.ErrorContains(t, err, advice)
			}
			if i%10 > 0 {
				continue
			}
			_, err = Inspect(spoilt)
			require.ErrorAs(t, err, &damage)
			_, err = Peek(spoilt)
			require.ErrorAs(t, err, &damage)
			_, err = Repair(spoilt)
			require.ErrorAs(t, err, &damage)
			require.Equal(t, before, files(t, spoilt), "nothing changed")
		}
	}
}

// A log that ends anywhere is the log of a process that ended there.
func TestTornLogIsNoDamage(t *testing.T) {
	path, ends := dead(t, 20, 12)
	for cut := int64(0); cut <= ends[len(ends)-1]; cut += 1 + rand.Int64N(5000) {
		torn := again(t, path)
		require.NoError(t, os.Truncate(torn+walSuffix, cut))
		told := 20
		for _, end := range ends {
			if end <= cut {
				told++
			}
		}
		m, err := Peek(torn)
		require.NoError(t, err)
		require.Len(t, m.Tasks, told)
		require.Len(t, memory(t, opened(t, Config{Path: torn})).Tasks, told)
	}
}

// Nor is one whose last frames were only half written over those of an older log, or over
// what a transaction has left that was taken back.
// Who is cut off while it begins a log anew leaves half a head before frames that are
// all in the database. Nothing of that is lost, and the same head before other frames is
// damage.
func TestTornHead(t *testing.T) {
	for moved, n := range map[bool]int{true: 0, false: 3} {
		path, _ := dead(t, 20, n)
		torn := again(t, path)
		edited(t, torn+walSuffix, func(b []byte) []byte {
			require.Greater(t, len(b), walHeader)
			copy(b[12:16], "next") // the first half of a head with another number
			return b
		})
		j, err := Open(Config{Path: torn})
		if !moved {
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			continue
		}
		require.NoError(t, err)
		require.Len(t, memory(t, j).Tasks, 20)
		synced(t, j, typical(21))
		shut(t, j)
	}
}

func TestTornOverOldFrames(t *testing.T) {
	path, ends := dead(t, 2000, 12) // what the checkpoint left is longer by far
	info := stateSize(t, path+walSuffix)
	require.Greater(t, info, ends[len(ends)-1]+5*frameSize, "old frames are behind")
	require.Len(t, memory(t, opened(t, Config{Path: again(t, path)})).Tasks, 2012)
	whole, err := os.ReadFile(path + walSuffix)
	require.NoError(t, err)
	for i := range ends[1:] {
		for _, at := range []int64{0, 24, 100, frameHeader + 2000} { // what came of the last transaction's first frame
			torn := again(t, path)
			edited(t, torn+walSuffix, func(b []byte) []byte {
				old := whole[ends[len(ends)-1]:]
				old = old[:min(len(old), len(b)-int(ends[i]))]
				from := int(ends[i] + at)
				copy(b[from:], old[int(at):])
				for n := int(ends[i]) + frameSize; n+frameSize <= len(b); n += frameSize {
					copy(b[n+8:n+16], whole[len(whole)-frameSize+8:len(whole)-frameSize+16]) // all of them old
				}
				return b
			})
			require.Len(t, memory(t, opened(t, Config{Path: torn})).Tasks, 2001+i, "%d bytes behind %d", at, i)
		}
	}
	left := again(t, path)
	edited(t, left+walSuffix, func(b []byte) []byte {
		// The same salts, a commit, and no sum that follows.
		for n := int(ends[5]); n < len(b)-frameSize; n += frameSize {
			copy(b[n+8:n+16], b[16:24])
			binary.BigEndian.PutUint32(b[n+4:], uint32(n%2))
			binary.BigEndian.PutUint32(b[n+16:], 1)
		}
		return b
	})
	require.Len(t, memory(t, opened(t, Config{Path: left})).Tasks, 2006)
}

func TestAcceptLoss(t *testing.T) {
	for name, spoil := range map[string]func(b []byte, ends []int64){
		"in its middle": func(b []byte, ends []int64) { copy(b[ends[9]+1000:], bytes.Repeat([]byte{0xff}, 16)) },
		"its head":      func(b []byte, _ []int64) { copy(b, bytes.Repeat([]byte{0xff}, 16)) },
	} {
		t.Run(name, func(t *testing.T) {
			path, ends := dead(t, 20, 30)
			done, err := AcceptLoss(path, "bash", "other")
			require.NoError(t, err)
			require.Empty(t, done, "nothing is lost")
			whole := again(t, path)
			j := opened(t, Config{Path: whole})
			j.Notices().SetEpoch("first")
			synced(t, j, registry.CounterRow{Last: 77})
			path = copied(t, whole, t.TempDir())
			edited(t, path+walSuffix, func(b []byte) []byte { spoil(b, ends); return b })
			database, err := os.ReadFile(path)
			require.NoError(t, err)
			log, err := os.ReadFile(path + walSuffix)
			require.NoError(t, err)

			done, err = AcceptLoss(path, "bash", "other")
			require.NoError(t, err)
			require.NotEmpty(t, done)
			kept, err := os.ReadFile(path + lostSuffix)
			require.NoError(t, err)
			require.Equal(t, fingerprint(string(database)), fingerprint(string(kept)))
			kept, err = os.ReadFile(path + lostSuffix + walSuffix)
			require.NoError(t, err)
			require.Equal(t, fingerprint(string(log)), fingerprint(string(kept)))

			r, err := Inspect(path)
			require.NoError(t, err)
			require.Empty(t, r.Problems)
			require.Zero(t, r.Log)
			require.Equal(t, os.FileMode(0o600), r.Mode)
			j = opened(t, Config{Path: path})
			require.Empty(t, j.Notices().Epoch())
			m := memory(t, j)
			told := 20
			if name == "in its middle" {
				told = 30
			}
			require.Len(t, m.Tasks, told)
			last := map[registry.Kind]uint64{}
			for _, c := range m.Counters {
				last[c.Kind] = c.Last
			}
			require.Greater(t, last["bash"], uint64(50), "beyond all that was told")
			require.Positive(t, last["other"])
			require.Less(t, last["bash"], uint64(100_000))
			done, err = AcceptLoss(path, "bash")
			require.NoError(t, err)
			require.Empty(t, done)
		})
	}
}

// What was in the database already is not undone by the older pages of its log.
func TestAcceptLossOfALogThatWasMoved(t *testing.T) {
	path, ends := dead(t, 20, 30)
	j := opened(t, Config{Path: path})
	require.NoError(t, j.do(t.Context(), func(c *db) error { return c.checkpoint(sqlite3.CHECKPOINT_PASSIVE) }))
	path = copied(t, path, t.TempDir())
	edited(t, path+walSuffix, func(b []byte) []byte { copy(b[ends[4]+1000:], bytes.Repeat([]byte{0xff}, 16)); return b })
	_, err := Open(Config{Path: path})
	require.Error(t, err)
	_, err = AcceptLoss(path, "bash")
	require.NoError(t, err)
	require.Len(t, memory(t, opened(t, Config{Path: path})).Tasks, 50)
}

func TestAcceptLossTouchesNothingElse(t *testing.T) {
	_, err := AcceptLoss(at(t))
	require.NoError(t, err)
	path := kept(t)
	edited(t, path, func(b []byte) []byte { return b[:50] })
	before := files(t, path)
	_, err = AcceptLoss(path)
	require.Error(t, err)
	require.Equal(t, before, files(t, path))

	// Where the database is no good either there is nothing to go on with.
	path, ends := dead(t, 300, 30)
	edited(t, path+walSuffix, func(b []byte) []byte { copy(b[ends[4]+1000:], bytes.Repeat([]byte{0xff}, 16)); return b })
	edited(t, path, func(b []byte) []byte {
		for i := 5 * 4096; i < len(b); i += 4096 {
			copy(b[i:], bytes.Repeat([]byte{0xa5}, 64))
		}
		return b
	})
	before = files(t, path)
	_, err = AcceptLoss(path, "bash")
	var damage *DamageError
	require.ErrorAs(t, err, &damage)
	require.False(t, damage.Log)
	require.Equal(t, before, files(t, path), filepath.Dir(path))
}
