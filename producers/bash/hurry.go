package bash

// Hurry ends the grace of every stop that is under way or still to come: what is
// being stopped gets SIGKILL at once. It does not block and is idempotent.
func (p *Producer) Hurry() { p.host.Hurry() }
