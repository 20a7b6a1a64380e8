package proc

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// blindNet is a net that fails its first looks.
type blindNet struct {
	net
	looks int
}

func (n *blindNet) members() ([]Member, error) {
	if n.looks--; n.looks >= 0 {
		return nil, syscall.EMFILE
	}
	return n.net.members()
}

func TestLingeringLooksAgainAfterAnError(t *testing.T) {
	p, out := start(t, newHost(t), `sleep 339 & echo $!`)
	p.Wait()
	_, err := p.Reap()
	require.NoError(t, err)
	p.tree.net = &blindNet{net: p.tree.net, looks: 1}
	left, err := p.Tree().Lingering(10 * time.Millisecond)
	p.Tree().Stop(time.Second)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.False(t, alive(pidLine(t, out)))
}

// passingNet shows what was written for each look, the last one again and again, until it
// has shown all and is told to be empty.
type passingNet struct {
	net
	looks [][]Member
	stays bool
}

func (n *passingNet) empty() bool { return len(n.looks) == 0 }
func (n *passingNet) release()    {}
func (n *passingNet) members() ([]Member, error) {
	now := n.looks[0]
	if len(n.looks) > 1 || !n.stays {
		n.looks = n.looks[1:]
	}
	return now, nil
}

// Who is on its way out is given time; who stays is named, and so is who never gets out.
func TestLingeringDoesNotNameTheDying(t *testing.T) {
	dying, staying := Member{PID: 1, start: 1, exiting: true}, Member{PID: 2, start: 2}
	for _, c := range []struct {
		name     string
		patience time.Duration
		looks    [][]Member
		stays    bool
		want     []Member
	}{
		{"one that goes", 0, [][]Member{{dying}, {dying}, {dying}}, false, nil},
		{"one that goes, and one that stays", 0, [][]Member{{dying, staying}}, true, []Member{staying}},
		{"one that can't get out", 0, [][]Member{{dying}}, true, []Member{dying}},
		{"one that has gone, and is not reaped", time.Millisecond, [][]Member{{staying}, {}, {}}, false, nil},
	} {
		tree := &Tree{net: &passingNet{looks: c.looks, stays: c.stays}}
		left, err := tree.Lingering(c.patience)
		require.NoError(t, err)
		require.Equal(t, c.want, left, c.name)
	}
}
