// Package registrytest is the contract of [registry.Service] as code: one suite,
// many implementations. Each case states one promise and is named for it, so
// that a failing name alone says which promise was broken.
//
// An implementation plugs in from its own tests:
//
//	func TestContract(t *testing.T) {
//		registrytest.Run(t, func(t *testing.T, o registrytest.Options) registry.Service {
//			return New(Config{MaxTasksPerOwner: o.MaxTasksPerOwner, …})
//		})
//	}
//
// Every case runs alone, in a [testing/synctest] bubble, on a service that the
// factory makes inside that bubble. Time is therefore virtual and costs nothing,
// a wait for ever is a failure at once ("deadlock"), and a goroutine that
// outlives [registry.Service.Close] fails its case. For that an implementation
// must block on channels, timers and conditions only, and not on anything that
// another process could release.
//
// The suite brings its own work: [Producer] does what a [Script] says, [Work] is
// one start of it in the hands of the case, [Output] an exact stream in memory.
// Other rooms may use them to drive a real registry without real processes.
//
// A service that keeps its records plugs into [RunDurable] too, which lets its process
// die at any moment and holds the next one against all that was told. [Journal] is the
// journal of those cases.
//
// What the suites do not prove: text (a producer cuts and repairs characters), bounds
// and defaults of waits (the caller's affair).
// Where the contract leaves a choice, the case accepts every choice that keeps
// the two great promises: no result is lost, and no end is announced twice or
// not at all.
package registrytest
