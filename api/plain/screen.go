package plain

import (
	"strings"

	"github.com/charmbracelet/x/ansi/parser"
	"github.com/clipperhouse/displaywidth"
)

const del = 0x7f

// screen reads lines as a terminal does. What it holds is used again for the next
// line; nothing else of one reaches the other.
type screen struct {
	decoder decoder
	state   parser.State
	row     row
	params  params
}

// show writes what is seen of a line, which has no newline.
func (s *screen) show(out *strings.Builder, line []byte) {
	if s.decoder.utf8 == nil {
		s.decoder = newDecoder()
	}
	s.state = parser.GroundState
	s.row.out = out
	s.row.clear()
	for len(line) > 0 {
		r, size := s.decoder.next(line)
		if r <= lastC1 {
			s.control(byte(r))
		} else {
			s.character(r)
		}
		line = line[size:]
	}
	s.row.write()
}

// character takes a character behind C1. Strings swallow it; it breaks off every
// other sequence.
func (s *screen) character(r rune) {
	switch s.state {
	case parser.OscStringState, parser.DcsStringState, parser.SosStringState, parser.PmStringState, parser.ApcStringState:
	default:
		s.state = parser.GroundState
		s.row.put(r, displaywidth.Rune(r))
	}
}

// control takes an ASCII character or a C1 control by the parser's table.
func (s *screen) control(b byte) {
	if s.state == parser.CsiIntermediateState && b >= '0' && b <= '?' {
		return // out of order: the sequence is void, but not over
	}
	state, action := parser.Table.Transition(s.state, b)
	switch action {
	case parser.PrintAction:
		s.row.put(rune(b), 1)
	case parser.ExecuteAction:
		s.execute(b)
	case parser.ClearAction:
		s.params = params{}
	case parser.PrefixAction, parser.CollectAction:
		s.params.private = true
	case parser.ParamAction:
		s.params.add(b)
	case parser.DispatchAction:
		if state == parser.GroundState && s.inCSI() && !s.params.private {
			s.sequence(b)
		}
	}
	s.state = state
}

func (s *screen) inCSI() bool {
	return s.state == parser.CsiEntryState || s.state == parser.CsiParamState
}

func (s *screen) execute(b byte) {
	switch b {
	case '\r':
		s.row.move(0)
	case '\b':
		s.row.move(s.row.cursor - 1)
	case '\t':
		s.row.tab()
	}
}

// sequence does what a control sequence means for its own line.
func (s *screen) sequence(final byte) {
	n := s.params.first
	switch final {
	case 'G', '`': // to a column
		s.row.move(max(n, 1) - 1)
	case 'C', 'a': // right
		s.row.move(s.row.cursor + max(n, 1))
	case 'D': // left
		s.row.move(s.row.cursor - max(n, 1))
	case 'K', 'J': // erase in line; in display, of which this line is a part
		switch n {
		case 0:
			s.row.eraseRight()
		case 1:
			s.row.eraseLeft()
		case 2:
			s.row.erase()
		}
	}
}

// params are those of a control sequence, as far as they matter.
type params struct {
	first   int
	behind  bool // first is complete
	private bool // it means something else than the standard's
}

// most is where a number stops to grow: more than any line has columns.
const most = 1 << 30

func (p *params) add(b byte) {
	switch {
	case b < '0' || b > '9':
		p.behind = true
	case !p.behind:
		p.first = min(p.first*10+int(b-'0'), most)
	}
}
