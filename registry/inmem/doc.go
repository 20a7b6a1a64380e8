// Package inmem is the authority over the tasks that run in this process: it
// implements [registry.Service] in memory.
//
// One mutex guards all state. Nothing foreign is called while it is held:
// producers are called before or after, listeners hear from a queue that is
// filled under the mutex and emptied without it, one event at a time and in
// order. Slow steps are reserve → act → commit; observed ones are commit →
// release waiters → announce.
//
// Ended records stand in heaps, oldest end first, per owner and in all. Whoever lets
// one go takes it out, asks the producer without the mutex whether something of it
// lives, and looks again under the mutex before it is removed. A busy record waits
// outside the heaps until it is idle, one with something alive until it is asked
// again. They who let go take turns, so that none overlooks what another has in hand.
//
// With a journal every change of what must outlive the process is appended under the
// mutex, and nobody waits for the disk there. Each record knows the mark of its newest
// row. Whoever tells something waits for that mark first, without the mutex: an answer
// before it is given, a waiter after its release, the listeners before each batch. A
// removed record's output is given back only when the removal is written. That a notice
// was heard is written behind what its listeners wrote, so that an end is announced
// again rather than never.
//
// A terminal state on its way to a caller is a claim. While a task has claims
// its notice waits; a confirmed claim makes the task reported, the last one
// abandoned makes the notice due.
package inmem
