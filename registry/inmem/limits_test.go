package inmem_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
	"afoot/registry/inmem"
)

// lasting is work that ends when it is cancelled.
type lasting struct{ instant }

func (l lasting) Prepare(context.Context, registry.Spec) (registry.Plan, error) { return l, nil }

func (lasting) Start(_ context.Context, l registry.Launch) (registry.Run, error) {
	return lastingRun{settle: l.Settle}, nil
}

type lastingRun struct {
	instant
	settle func(registry.Outcome, error)
}

func (r lastingRun) Cancel(string) error {
	r.settle(registry.Outcome{Status: registry.StatusKilled, Result: json.RawMessage(`{}`)}, nil)
	return nil
}

func TestSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inmem.New(inmem.Config{MaxTasksPerOwner: 1, RetainAge: time.Hour})
		t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
		s.AttachController("test", registry.AllOwners())
		s.AttachProducer("instant", instant{})
		s.AttachProducer("lasting", lasting{})
		me := registry.Caller{Session: "one"}
		start := func(kind registry.Kind) error {
			_, err := s.Start(t.Context(), me, registry.StartRequest{Spec: registry.Spec{Kind: kind}})
			return err
		}
		kept := func() int {
			synctest.Wait()
			list, err := s.List(t.Context(), me, registry.ListOptions{})
			require.NoError(t, err)
			return len(list.Tasks)
		}
		require.NoError(t, start("lasting"))
		require.Equal(t, registry.CodeLimitReached, registry.CodeOf(start("lasting")))
		s.SetLimits(inmem.Limits{MaxTasksPerOwner: 3, RetainAge: time.Hour})
		require.NoError(t, start("lasting"))
		require.NoError(t, start("instant"))
		require.NoError(t, start("instant"))
		require.Equal(t, 4, kept())
		s.SetLimits(inmem.Limits{MaxTasksPerOwner: 1, RetainAge: time.Hour, RetainCount: 1})
		require.Equal(t, 3, kept(), "one ended too many goes, live ones stay")
		require.Equal(t, registry.CodeLimitReached, registry.CodeOf(start("lasting")))
		s.SetLimits(inmem.Limits{RetainAge: time.Minute})
		time.Sleep(time.Minute)
		require.Equal(t, 2, kept(), "the shorter age holds for what has ended before")
	})
}
