package sse

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var day0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newLog(size int) *noticeLog {
	return &noticeLog{rules: &rules{size: size, most: size, age: 24 * time.Hour}}
}

// push appends, and gives what had to go.
func (l *noticeLog) push(n Notice) (number uint64, evicted *entry) {
	number = l.append(n)
	if gone := l.trim(func(*entry) bool { return false }); len(gone) > 0 {
		evicted = gone[0]
	}
	return number, evicted
}

func (l *noticeLog) add(n int, owner string) {
	for range n {
		l.push(Notice{Key: fmt.Sprint("k", l.last+1), Owner: owner, Agent: owner})
	}
}

func (l *noticeLog) write(numbers ...uint64) {
	for _, n := range numbers {
		l.written(n, day0)
	}
}

// rest is all that a cursor still gets.
func (l *noticeLog) rest(c cursor) (numbers []uint64) {
	for e := l.next(&c); e != nil; e = l.next(&c) {
		numbers = append(numbers, e.number)
	}
	return numbers
}

func TestI2Place(t *testing.T) {
	// Ten notices, the log holds six; 5 is pending all along, 8 is withdrawn.
	l := newLog(6)
	l.add(4, "a")
	l.write(1, 2, 3, 4)
	l.add(1, "a")
	l.add(4, "b")
	l.write(6, 7, 8, 9)
	l.add(1, "b")
	l.withdraw("k8")
	require.Equal(t, uint64(4), l.evicted)

	pending := []uint64{5, 10}
	for _, c := range []struct {
		name, id, gap string
		agent         string
		want          []uint64
	}{
		{name: "none", want: pending},
		{name: "none, one agent", agent: "b", want: []uint64{10}},
		{name: "oldest that can be placed", id: "ep-4", want: []uint64{5, 6, 7, 9, 10}},
		{name: "middle", id: "ep-6", want: []uint64{7, 9, 10}},
		{name: "middle, one agent", id: "ep-4", agent: "a", want: []uint64{5}},
		{name: "a withdrawn one", id: "ep-8", want: []uint64{9, 10}},
		{name: "newest", id: "ep-10"},
		{name: "evicted", id: "ep-3", gap: GapEvicted, want: pending},
		{name: "evicted, one agent", id: "ep-3", agent: "a", gap: GapEvicted, want: []uint64{5}},
		{name: "before the first", id: "ep-0", gap: GapEvicted, want: pending},
		{name: "too large by one", id: "ep-11", gap: GapAhead, want: pending},
		{name: "largest", id: "ep-18446744073709551615", gap: GapAhead, want: pending},
		{name: "larger than any", id: "ep-18446744073709551616", gap: GapAhead, want: pending},
		{name: "digits without end", id: "ep-" + strings.Repeat("7", 10<<10), gap: GapAhead, want: pending},
		{name: "only digits", id: strings.Repeat("7", 10<<10), gap: GapNotAnID, want: pending},
		{name: "other epoch", id: "eq-7", gap: GapOtherEpoch, want: pending},
		{name: "longer epoch", id: "ep-1-7", gap: GapOtherEpoch, want: pending},
		{name: "word", id: "abc", gap: GapNotAnID, want: pending},
		{name: "no number", id: "ep-", gap: GapNotAnID, want: pending},
		{name: "no epoch", id: "-7", gap: GapNotAnID, want: pending},
		{name: "leading zero", id: "ep-07", gap: GapNotAnID, want: pending},
		{name: "plus", id: "ep-+7", gap: GapNotAnID, want: pending},
		{name: "blank", id: "ep-7 ", gap: GapNotAnID, want: pending},
		{name: "other digits", id: "ep-٧", gap: GapNotAnID, want: pending},
		{name: "hyphen", id: "-", gap: GapNotAnID, want: pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			cur, gap := l.place(c.agent, "ep", c.id)
			require.Equal(t, c.gap, gap)
			require.Equal(t, c.want, l.rest(cur))
		})
	}
}

func TestPlaceInAnEmptyLog(t *testing.T) {
	for id, want := range map[string]string{"": "", "ep-0": "", "ep-1": GapAhead, "other-0": GapOtherEpoch} {
		_, gap := newLog(1).place("", "ep", id)
		require.Equal(t, want, gap, id)
	}
}

func TestPendingOnesOfTheOpeningArriveAlsoIfWrittenMeanwhile(t *testing.T) {
	l := newLog(10)
	l.add(3, "a")
	l.write(1)
	c, _ := l.place("", "ep", "")
	l.write(2)
	l.add(1, "a")
	l.write(4)
	require.Equal(t, []uint64{2, 3, 4}, l.rest(c))
}

func TestSizeTakesWrittenOnesFirst(t *testing.T) {
	l := newLog(3)
	l.add(3, "a")
	l.write(2)
	_, evicted := l.push(Notice{Owner: "a", Agent: "a"})
	require.Equal(t, uint64(2), evicted.number)
	require.False(t, l.missed(""), "a written one is not lost")

	_, evicted = l.push(Notice{Owner: "a", Agent: "a"})
	require.Equal(t, uint64(1), evicted.number, "all pending: the oldest")
	require.True(t, l.missed(""))
	require.True(t, l.missed("a"))
	require.False(t, l.missed("b"))

	c, gap := l.place("a", "ep", "")
	require.Equal(t, GapUndelivered, gap, "without an id a loss is told too")
	require.Equal(t, []uint64{3, 4, 5}, l.rest(c))
	_, gap = l.place("b", "ep", "")
	require.Empty(t, gap, "another agent lost nothing")
	_, gap = l.place("", "ep", "ep-1")
	require.Equal(t, GapEvicted, gap)
	_, gap = l.place("", "ep", "ep-2")
	require.Empty(t, gap)

	l.told("b")
	require.True(t, l.missed("a"))
	l.told("")
	_, gap = l.place("", "ep", "")
	require.Empty(t, gap, "told once")
}

func TestADroppedOwnerLosesNothing(t *testing.T) {
	l := newLog(2)
	l.add(2, "a")
	l.write(2)
	l.add(1, "b")
	l.add(1, "a") // 1 is evicted while pending
	require.True(t, l.missed("a"))
	l.dropOwner("a")
	require.False(t, l.missed("a"))
	c, _ := l.place("", "ep", "")
	require.Equal(t, []uint64{3}, l.rest(c))
}

func TestWithdrawnAndDroppedMakeNoGap(t *testing.T) {
	l := newLog(10)
	l.add(5, "a")
	l.write(1, 2)
	l.withdraw("k2")
	l.withdraw("k3")
	l.withdraw("k99")
	l.dropOwner("b")
	c, gap := l.place("", "ep", "ep-1")
	require.Empty(t, gap)
	require.Equal(t, []uint64{4, 5}, l.rest(c))

	l.dropOwner("a")
	c, gap = l.place("", "ep", "ep-0")
	require.Empty(t, gap)
	require.Equal(t, []uint64{1}, l.rest(c), "written ones stay for replay")
	l.written(4, day0)
	require.Len(t, l.entries, 1, "a write that raced with the drop")
}

func TestAgeTakesOnlyWrittenOnes(t *testing.T) {
	l := newLog(10)
	l.add(3, "a")
	l.written(2, day0)
	l.written(3, day0.Add(time.Hour))
	l.written(2, day0.Add(2*time.Hour)) // again, by a replay: the first counts
	require.Empty(t, l.expire(day0.Add(24*time.Hour-1)))
	evicted := l.expire(day0.Add(24 * time.Hour))
	require.Len(t, evicted, 1)
	require.Equal(t, uint64(2), evicted[0].number)
	require.Equal(t, uint64(2), l.evicted)
	l.expire(day0.Add(1000 * time.Hour))
	c, _ := l.place("", "ep", "")
	require.Equal(t, []uint64{1}, l.rest(c), "pending ones do not age")
	require.False(t, l.missed(""))
}

// TestLogModel holds the log against a plain memory of everything that happened.
func TestLogModel(t *testing.T) {
	type kept struct {
		key, owner          string
		pending, gone, held bool
		// evicted is the lowest number whose client misses nothing by its eviction.
		evicted uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(t, "size")
		l := newLog(size)
		var all []kept // by number - 1
		keys := 0
		add := func(key, owner string) {
			n, evicted := l.push(Notice{Key: key, Owner: owner, Agent: owner})
			all = append(all, kept{key: key, owner: owner, pending: true})
			require.Equal(t, uint64(len(all)), n)
			if evicted == nil {
				return
			}
			e := &all[evicted.number-1]
			require.False(t, e.gone)
			if e.pending {
				require.False(t, slices.ContainsFunc(all, func(k kept) bool { return !k.gone && !k.pending }))
			}
			e.gone, e.evicted = true, evicted.number
			if e.held { // whoever was there before the new one may have passed over it
				e.evicted = n
			}
		}
		key := func() string { return fmt.Sprint("k", rapid.IntRange(1, keys+1).Draw(t, "key")) }
		number := func() uint64 { return rapid.Uint64Range(1, uint64(len(all))+1).Draw(t, "number") }
		owner := rapid.SampledFrom([]string{"a", "b"})
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				keys++
				add(fmt.Sprint("k", keys), owner.Draw(t, "owner"))
			},
			"hold": func(*rapid.T) {
				k := key()
				l.hold(k)
				for i := range all {
					all[i].held = all[i].held || all[i].key == k && all[i].pending
				}
			},
			"due": func(*rapid.T) {
				k := key()
				for _, e := range l.unhold(k) {
					n := e.notice
					i := slices.IndexFunc(all, func(a kept) bool { return a.key == k && a.held && !a.gone })
					require.GreaterOrEqual(t, i, 0)
					require.Equal(t, all[i].owner, n.Owner)
					all[i].gone = true
					add(k, n.Owner)
				}
				require.False(t, slices.ContainsFunc(all, func(a kept) bool { return a.key == k && a.held && !a.gone }))
			},
			"written": func(*rapid.T) {
				n := number()
				l.written(n, day0)
				if n <= uint64(len(all)) {
					all[n-1].pending, all[n-1].held = false, false
				}
			},
			"withdraw": func(*rapid.T) {
				k := key()
				l.withdraw(k)
				for i := range all {
					all[i].gone = all[i].gone || all[i].key == k
				}
			},
			"drop": func(t *rapid.T) {
				o := owner.Draw(t, "owner")
				l.dropOwner(o)
				for i := range all {
					if all[i].owner == o && all[i].pending {
						all[i].gone = true
					}
				}
			},
			"": func(t *rapid.T) {
				require.LessOrEqual(t, len(l.entries), size)
				after := number() - 1
				agent := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "agent")
				var pending, later []uint64
				lost := false
				for i, k := range all {
					n := uint64(i + 1)
					lost = lost || k.evicted > after
					if k.gone || k.held || agent != "" && agent != k.owner {
						continue
					}
					if k.pending {
						pending = append(pending, n)
					}
					if n > after {
						later = append(later, n)
					}
				}
				c, _ := l.place(agent, "ep", "")
				require.Equal(t, pending, l.rest(c))
				c, gap := l.place(agent, "ep", string(formatID("ep", after)))
				require.Equal(t, lost, gap == GapEvicted)
				if lost {
					later = pending
				}
				require.Equal(t, later, l.rest(c))
			},
		})
	})
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "ep-1", "ep-01", "-", "ep--1", "ep-99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		number, gap := parseID("ep", id)
		if gap == "" {
			require.Equal(t, id, string(formatID("ep", number)))
		} else {
			require.Zero(t, number)
		}
	})
}
