package bash

// Haunted counts the ended commands of which processes still live. It looks at the
// processes of each that left some.
func (p *Producer) Haunted() int {
	p.mu.Lock()
	runs := make([]*run, 0, len(p.haunted))
	for r := range p.haunted {
		runs = append(runs, r)
	}
	p.mu.Unlock()
	living := 0
	for _, r := range runs {
		if r.Left() {
			living++
		}
	}
	return living
}
