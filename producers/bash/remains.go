package bash

import (
	"os"

	"afoot/producers/proc"
)

// Remains names what the producer leaves if its program ends without closing it, with
// the memory that lists the processes; both are for a watchdog in another process, see
// [proc.EndRemains]. The memory stays the producer's; nil if there is none.
func (p *Producer) Remains() (proc.Remains, *os.File) { return p.host.Remains(), p.host.Roll() }
