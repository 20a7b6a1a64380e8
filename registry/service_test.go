package registry_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestScopeCovers(t *testing.T) {
	alice := registry.Owner{Session: "alice", Agent: "default", Incarnation: 1}
	aliceToo := registry.Owner{Session: "alice", Agent: "agent-2", Incarnation: 9}
	bob := registry.Owner{Session: "bob", Agent: "default", Incarnation: 2}
	nobody := registry.Owner{}
	for name, c := range map[string]struct {
		scope           registry.Scope
		covers, refuses []registry.Owner
	}{
		"all":     {registry.AllOwners(), []registry.Owner{alice, aliceToo, bob, nobody}, nil},
		"session": {registry.SessionScope("alice"), []registry.Owner{alice, aliceToo}, []registry.Owner{bob, nobody}},
		"zero":    {registry.Scope{}, []registry.Owner{nobody}, []registry.Owner{alice, bob}},
		"nobody":  {registry.SessionScope(""), []registry.Owner{nobody}, []registry.Owner{alice, bob}},
	} {
		for _, o := range c.covers {
			require.True(t, c.scope.Covers(o), "%s: %+v", name, o)
		}
		for _, o := range c.refuses {
			require.False(t, c.scope.Covers(o), "%s: %+v", name, o)
		}
	}
}

// ends counts what became of a delivery.
type ends struct{ confirmed, abandoned int }

func (e *ends) delivery(err error) *registry.Delivery {
	return registry.NewDelivery(registry.Read{Text: "text"},
		func() error { e.confirmed++; return err },
		func() { e.abandoned++ })
}

func TestDeliveryCountsTheFirstEndOnly(t *testing.T) {
	confirm := func(d *registry.Delivery) { _ = d.Confirm() }
	abandon := func(d *registry.Delivery) { d.Abandon() }
	for name, c := range map[string]struct {
		calls []func(*registry.Delivery)
		want  ends
	}{
		"none":                 {nil, ends{}},
		"confirm":              {[]func(*registry.Delivery){confirm}, ends{confirmed: 1}},
		"confirm twice":        {[]func(*registry.Delivery){confirm, confirm}, ends{confirmed: 1}},
		"confirm then abandon": {[]func(*registry.Delivery){confirm, abandon}, ends{confirmed: 1}},
		"abandon":              {[]func(*registry.Delivery){abandon}, ends{abandoned: 1}},
		"abandon then confirm": {[]func(*registry.Delivery){abandon, confirm, abandon}, ends{abandoned: 1}},
	} {
		var got ends
		d := got.delivery(nil)
		for _, call := range c.calls {
			call(d)
		}
		require.Equal(t, c.want, got, name)
		require.Equal(t, "text", d.Text, "%s: the text stays", name)
	}
}

func TestDeliveryGivesTheErrorOfConfirmOnce(t *testing.T) {
	boom := errors.New("boom")
	var e ends
	d := e.delivery(boom)
	require.ErrorIs(t, d.Confirm(), boom)
	require.NoError(t, d.Confirm())
	require.Equal(t, ends{confirmed: 1}, e)
}

// A delivery may be ended from inside its own end, as a deferred Abandon does.
func TestDeliveryEndsInsideItsEnd(t *testing.T) {
	abandoned := 0
	var d *registry.Delivery
	d = registry.NewDelivery(registry.Read{},
		func() error { d.Abandon(); return nil },
		func() { abandoned++ })
	require.NoError(t, d.Confirm())
	require.Zero(t, abandoned)
}

func TestZeroDeliveryEndsQuietly(t *testing.T) {
	var d registry.Delivery
	d.Abandon()
	require.NoError(t, d.Confirm())
}

func TestChangeVisible(t *testing.T) {
	for change, want := range map[registry.ChangeType]bool{
		registry.ChangeRegistered: true, registry.ChangeStopping: true, registry.ChangeSettled: true,
		registry.ChangeReported: true, registry.ChangeRemoved: true, registry.ChangeEvicted: true, registry.ChangeOwnerGone: true,
		registry.ChangeHeld: false, registry.ChangeDue: false,
	} {
		require.Equal(t, want, change.Visible(), "%s", change)
	}
}
