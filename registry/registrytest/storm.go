package registrytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"afoot/registry"
)

// stormCases: everything at once, and then only the promises that must hold
// whatever happened: no text is lost, every end is told exactly once.
func stormCases() []testCase {
	var cases []testCase
	for seed := range uint64(8) {
		cases = append(cases, testCase{
			name:    fmt.Sprint("every end is told once and no text is lost, seed ", seed),
			options: Options{MaxTasksPerOwner: 100},
			run:     func(w *world) { storm(w, seed) },
		})
	}
	return cases
}

const (
	stormTasks   = 12
	stormReaders = 4
)

// stormTask is a task with what its readers have confirmed.
type stormTask struct {
	*Work
	mu  sync.Mutex
	got map[int64]string
	// ends counts confirmed answers that told of the end, lives those of live work that
	// was let go of.
	ends, lives int
	killed      bool
}

func storm(w *world, seed uint64) {
	var actors sync.WaitGroup
	var tasks []*stormTask
	for i := range stormTasks {
		c := alice()
		if i%3 == 2 {
			c = bob()
		}
		start := w.start
		if i%2 == 1 {
			start = w.foreground
		}
		task := &stormTask{
			Work: start(c, Script{Cancel: func(work *Work, _ string) error {
				go work.Complete("cancelled")
				return nil
			}}),
			got: map[int64]string{},
		}
		tasks = append(tasks, task)
		dice := func(actor uint64) *rand.Rand {
			return rand.New(rand.NewPCG(seed, uint64(i)<<8|actor))
		}
		actors.Go(func() { task.work(dice(0)) })
		for actor := range uint64(stormReaders) {
			actors.Go(func() { task.read(w, dice(actor+1)) })
		}
		if i%4 == 3 {
			actors.Go(func() {
				pause(dice(200))
				_, _, err := w.Kill(w.ctx, task.caller(), task.ID, "storm")
				task.mu.Lock()
				task.killed = err == nil
				task.mu.Unlock()
			})
		}
	}
	actors.Wait()
	w.pass(time.Hour)
	for _, task := range tasks {
		task.judge(w)
	}
}

func pause(dice *rand.Rand) { time.Sleep(time.Duration(dice.IntN(50)) * time.Millisecond) }

// work prints numbered lines and ends.
func (task *stormTask) work(dice *rand.Rand) {
	for range 20 {
		pause(dice)
		task.Output.mu.Lock()
		if !task.Output.ended {
			task.Output.kept = append(task.Output.kept, "0123456789\n"...)
			task.Output.releaseLocked()
		}
		task.Output.mu.Unlock()
	}
	task.Complete("ended by itself")
}

// read reads in every way, loses some answers and leaves some calls.
func (task *stormTask) read(w *world, dice *rand.Rand) {
	for range 30 {
		ctx, cancel := context.WithCancel(w.ctx)
		if dice.IntN(4) == 0 {
			time.AfterFunc(time.Duration(dice.IntN(30))*time.Millisecond, cancel)
		}
		o := registry.ReadOptions{
			Wait:       time.Duration(dice.IntN(3)*20) * time.Millisecond,
			LimitBytes: int64(dice.IntN(3) * 15),
			Promote:    dice.IntN(30) == 0,
		}
		d, err := w.Read(ctx, task.caller(), task.ID, o)
		cancel()
		if err != nil {
			continue
		}
		if o.Promote && !d.Snapshot.Status.Terminal() {
			task.mu.Lock()
			task.lives++
			task.mu.Unlock()
		}
		pause(dice)
		if dice.IntN(3) == 0 {
			d.Abandon()
			continue
		}
		// Noted first: whoever reads after the confirm begins behind this text.
		task.mu.Lock()
		if d.Text != "" {
			task.got[d.Offset] += d.Text
		}
		if d.Snapshot.Status.Terminal() {
			task.ends++
		}
		task.mu.Unlock()
		_ = d.Confirm()
	}
}

func (task *stormTask) judge(w *world) {
	w.t.Helper()
	rest := w.take(task.Work)
	if rest.Text != "" {
		task.got[rest.Offset] += rest.Text
	}
	var offsets []int64
	for offset := range task.got {
		offsets = append(offsets, offset)
	}
	slices.Sort(offsets)
	var joined strings.Builder
	for _, offset := range offsets {
		w.is.EqualValues(joined.Len(), offset, "%s: text was lost or told twice", task.ID)
		joined.WriteString(task.got[offset])
	}
	w.is.Equal(string(task.Output.kept), joined.String())

	w.settled()
	story := w.log.story(task.ID)
	told := w.log.count(task.ID, notice)
	w.is.LessOrEqual(told, 1)
	w.is.Equal(1, w.log.count(task.ID, registry.ChangeSettled))
	w.is.LessOrEqual(w.log.count(task.ID, registry.ChangeReported), 1)
	s := w.get(task.Work)
	if !s.Foreground && slices.Contains(story, registry.ChangePromoted) {
		w.is.Positive(task.lives, "%s", task.ID)
	}
	if s.Foreground {
		w.is.Zero(task.lives, "%s was let go of", task.ID)
		w.is.Zero(told, "%s: %v", task.ID, story)
		w.is.True(s.Reported)
	} else if told == 0 && !task.killed {
		w.is.Positive(task.ends, "%s: its end was swallowed: %v", task.ID, story)
	}
	if slices.Contains(story, registry.ChangeStopping) {
		w.is.Zero(told, "%s: %v", task.ID, story)
	}
	w.is.Equal(registry.ChangeRegistered, story[0])
	if told == 1 {
		w.is.Equal(slices.Index(story, registry.ChangeSettled)+1, slices.Index(story, notice))
	}
}
