package registrytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"afoot/registry"
)

// retentionModelCases: whatever happens in whatever order, exactly those tasks are
// kept that the rules keep.
func retentionModelCases() []testCase {
	var cases []testCase
	for seed := range uint64(12) {
		cases = append(cases, testCase{
			name:    fmt.Sprint("what is kept is what the rules keep, seed ", seed),
			options: Options{RetainCount: modelCount, RetainAge: modelAge, MaxTasksPerOwner: 1000},
			run:     func(w *world) { retentionModel(w, rand.New(rand.NewPCG(seed, 7))) },
		})
	}
	return cases
}

const (
	modelCount = 4
	modelAge   = 2 * time.Minute
	modelSteps = 150
)

// modelTask is a task as the rules see it.
type modelTask struct {
	*Work
	ended    bool
	reported bool
	at       time.Time
	gone     bool
	held     *registry.Delivery
	handed   bool
	until    time.Time // a handout is fresh before
}

func (m *modelTask) busy() bool {
	return m.held != nil || m.handed && time.Now().Before(m.until)
}

func retentionModel(w *world, dice *rand.Rand) {
	agent := w.open(alice(), 0)
	owners := []registry.Caller{alice(), agent, bob(), nobody()}
	tasks := make([][]*modelTask, len(owners))
	for step := range modelSteps {
		i := dice.IntN(len(owners))
		var there []*modelTask
		for _, m := range tasks[i] {
			if !m.gone {
				there = append(there, m)
			}
		}
		if len(there) == 0 || dice.IntN(4) == 0 {
			tasks[i] = append(tasks[i], &modelTask{Work: w.start(owners[i], Script{})})
		} else {
			there[dice.IntN(len(there))].act(w, dice)
		}
		w.pass(tick)
		for _, mine := range tasks {
			modelRules(mine)
			for _, m := range mine {
				_, err := w.Get(w.ctx, m.caller(), m.ID)
				w.is.Equal(m.gone, registry.CodeOf(err) == registry.CodeGone, "step %d: %s %+v", step, m.ID, m)
				w.is.Equal(m.gone, m.Discards() == 1, "step %d: %s", step, m.ID)
			}
		}
	}
}

// act does one thing to a task that is there.
func (m *modelTask) act(w *world, dice *rand.Rand) {
	switch dice.IntN(9) {
	case 0, 1, 2:
		if !m.ended {
			m.ended, m.at = true, time.Now()
			m.Complete("")
		}
	case 3:
		if m.held == nil {
			w.take(m.Work)
			m.reported = m.reported || m.ended
			m.handed = false // it was read past what was handed out
		}
	case 4:
		if m.held == nil {
			m.held = w.hold(m.Work)
			m.until = time.Now().Add(registry.AckHold)
		}
	case 5:
		m.finish(w, dice.IntN(2) == 0)
	case 6:
		if m.held == nil {
			w.takeExplicit(m.Work)
			m.handed, m.until = true, time.Now().Add(registry.AckHold)
		}
	case 7:
		w.pass(time.Duration(dice.IntN(40)) * time.Second)
	case 8:
		if m.ended && dice.IntN(3) == 0 {
			w.is.NoError(w.Purge(w.ctx, m.caller(), m.ID))
			m.gone = true
		}
	}
}

func (m *modelTask) finish(w *world, confirm bool) {
	if m.held == nil {
		return
	}
	end := m.held.Snapshot.Status.Terminal()
	if confirm {
		w.is.NoError(m.held.Confirm())
		m.reported, m.handed = m.reported || end, false
	} else {
		m.held.Abandon()
	}
	m.held = nil
}

// modelRules lets those of one owner go that have to.
func modelRules(mine []*modelTask) {
	old := func(m *modelTask) bool { return time.Since(m.at) >= modelAge }
	for {
		count, unreported := 0, 0
		var can []*modelTask
		for _, m := range mine {
			if m.gone || !m.ended {
				continue
			}
			count++
			if !m.reported {
				unreported++
			}
			if !m.busy() {
				can = append(can, m)
			}
		}
		slices.SortFunc(can, func(a, b *modelTask) int { return a.at.Compare(b.at) })
		next := slices.IndexFunc(can, old)
		if next < 0 && count > modelCount {
			next = slices.IndexFunc(can, func(m *modelTask) bool { return m.reported })
			if next < 0 && unreported > modelCount && len(can) > 0 {
				next = 0
			}
		}
		if next < 0 {
			return
		}
		can[next].gone = true
	}
}
