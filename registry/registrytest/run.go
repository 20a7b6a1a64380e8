package registrytest

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"afoot/registry"
)

// Options are the settings that cases vary. A zero field asks for the product's
// default: 10 tasks per owner, 1000 tasks, 64 agents per session, 8 s.
type Options struct {
	MaxTasksPerOwner    int
	MaxTasks            int
	MaxAgentsPerSession int
	// TeardownTimeout is how long the end of an owner or of the service waits for
	// cancelled work before its record is force-failed.
	TeardownTimeout time.Duration
	// RetainCount and RetainAge bound ended tasks: 1000 per exact owner, 24 h.
	RetainCount int
	RetainAge   time.Duration
	// Room is asked before each start; nil means always. A service with a method
	// MakeRoom() is also held to ask it there.
	Room func() error
	// Adopt is what a [Mover] gave that was there before.
	Adopt json.RawMessage
}

// Factory makes an empty service with nothing attached. It is called inside the
// bubble of one case; the suite closes the service when the case is over.
type Factory func(t *testing.T, o Options) registry.Service

// testCase is one promise. Its name reads as a sentence about the group's verb.
type testCase struct {
	name    string
	options Options
	// bare leaves out the controller and the producer that a world has otherwise.
	bare bool
	// roomed makes the service ask the world for room.
	roomed bool
	run    func(w *world)
}

type group struct {
	name  string
	cases []testCase
}

// Run holds the services that factory makes against the whole contract.
func Run(t *testing.T, factory Factory) {
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { c.run(newWorld(t, factory, c)) })
				})
			}
		})
	}
}

func groups() []group {
	return []group{
		{"attach", attachCases()},
		{"listen", listenCases()},
		{"start checks", startCheckCases()},
		{"start limits", startLimitCases()},
		{"start ids", startIDCases()},
		{"start publish", startPublishCases()},
		{"idempotency", idempotencyCases()},
		{"get", getCases()},
		{"list", listCases()},
		{"foreground", foregroundCases()},
		{"promote", promoteCases()},
		{"promote races", promoteRaceCases()},
		{"tail", tailCases()},
		{"look", lookCases()},
		{"read", readCases()},
		{"final output", finalCases()},
		{"delivery", deliveryCases()},
		{"turn", turnCases()},
		{"ack", ackCases()},
		{"ack hold", ackHoldCases()},
		{"held notice", heldCases()},
		{"leftovers", leftoverCases()},
		{"input", inputCases()},
		{"signal", signalCases()},
		{"split", splitCases()},
		{"split ack", splitAckCases()},
		{"retention", retentionCases()},
		{"retention races", retentionRaceCases()},
		{"retention model", retentionModelCases()},
		{"room", roomCases()},
		{"room races", roomRaceCases()},
		{"wait", waitCases()},
		{"wait races", waitRaceCases()},
		{"kill", killCases()},
		{"kill races", killRaceCases()},
		{"settle", settleCases()},
		{"notice", noticeCases()},
		{"order", orderCases()},
		{"fence", fenceCases()},
		{"purge", purgeCases()},
		{"agents", agentCases()},
		{"lease", leaseCases()},
		{"dispose", disposeCases()},
		{"dispose races", disposeRaceCases()},
		{"teardown", teardownCases()},
		{"close", closeCases()},
		{"storm", stormCases()},
	}
}
