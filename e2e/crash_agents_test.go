package e2e

import (
	"fmt"
	"net/http"
)

// owner is an agent.
type owner struct {
	id, label string
	may       bool // its end was asked for
	gone      bool // an answer said so
	since     int  // in which connection
}

// living gives agents that nobody asked to end; nil among them is the default one.
func (p *party) living() []*owner {
	all := []*owner{nil}
	for _, o := range p.agents {
		if !o.may {
			all = append(all, o)
		}
	}
	return all
}

func (p *party) acting(o *owner) *client {
	if o == nil {
		return p.c
	}
	return p.c.acting(o.id)
}

func (p *party) open() error {
	if len(p.living()) > 3 {
		return nil
	}
	floor, label := p.w.floor("agent"), "agent "+hexText(6)
	p.opened = append(p.opened, label)
	a, err := p.call(p.c, http.MethodPost, "/agents", fields{"label": label})
	if err != nil {
		return err
	}
	p.opened = p.opened[:len(p.opened)-1]
	var made struct{ ID string }
	if err := expect(a, &made, http.StatusCreated); err != nil {
		return err
	}
	p.agents = append(p.agents, &owner{id: made.ID, label: label})
	return p.w.fresh(made.ID, floor)
}

func (p *party) dispose() error {
	all := p.living()
	o := all[p.r.IntN(len(all))]
	if o == nil {
		return nil
	}
	return p.disposed(o)
}

// disposed asks for the end of an agent, and notes it.
func (p *party) disposed(o *owner) error {
	o.may = true
	a, err := p.call(p.c, http.MethodDelete, "/agents/"+o.id, nil)
	if err != nil {
		return err
	}
	o.gone, o.since = true, p.connection
	for _, f := range p.tasks {
		if f.agent == o {
			f.gone = true
		}
	}
	return expect(a, nil, http.StatusNoContent, http.StatusGone)
}

// checkAgents compares who is there.
func (p *party) checkAgents() error {
	a, err := p.call(p.c, http.MethodGet, "/agents", nil)
	if err != nil {
		return err
	}
	var all struct{ Agents []struct{ ID, Label string } }
	if err := expect(a, &all, http.StatusOK); err != nil {
		return err
	}
	live := map[string]string{}
	for _, agent := range all.Agents {
		live[agent.ID] = agent.Label
	}
	for _, o := range p.agents {
		label, found := live[o.id]
		delete(live, o.id)
		switch {
		case o.gone && found:
			return fmt.Errorf("%s was disposed and is back", o.id)
		case !o.may && (!found || label != o.label):
			return fmt.Errorf("%s %q is lost: %v", o.id, o.label, all)
		case o.may && !o.gone:
			if err := p.disposed(o); err != nil {
				return fmt.Errorf("the end of %s, asked for again: %w", o.id, err)
			}
		}
	}
	for id, label := range live {
		known := false
		for _, opened := range p.opened {
			known = known || opened == label
		}
		if id == "default" {
			continue
		}
		if !known {
			return fmt.Errorf("%s %q was opened by nobody", id, label)
		}
		if err := p.w.fresh(id, 0); err != nil {
			return err
		}
		p.agents = append(p.agents, &owner{id: id, label: label})
	}
	p.opened = nil
	return nil
}
