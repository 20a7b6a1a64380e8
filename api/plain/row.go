package plain

import (
	"sort"
	"strings"
)

const (
	// margin is how far the cursor can go on its own, past the text: a terminal
	// has an edge too, and what lies between is filled with blanks.
	margin  = 80
	tabStop = 8
	// widest is how many columns a row has; then another one begins, as at a
	// terminal's edge. It bounds memory.
	widest = 1 << 16
)

// What a cell may hold besides a character.
const (
	blank = -1 // nothing was ever there
	rest  = -2 // another column of the cell before it
)

// none is the end of a list of marks.
const none = -1

// cell is one column.
type cell struct {
	r rune
	// marks is the last of the characters without width that stand on it; they
	// are a ring in row.marks.
	marks int32
	// age is how many erasures had been when it was written.
	age int32
}

// mark is a character without width.
type mark struct {
	r    rune
	next int32
}

// erasure makes the columns below end blank if they were written at or before
// its age.
type erasure struct{ end, age int32 }

// row is one line of a terminal that is as wide as it needs to be.
type row struct {
	out    *strings.Builder
	cells  []cell
	cursor int
	marks  []mark
	// lead are the marks before the first column.
	lead int32
	// erasures are what was erased up to the cursor, in their order; ends fall
	// from each to the next, because a wider one makes those before it void. They
	// are applied in the end: blanking the cells each time would not be linear.
	erasures []erasure
	age      int32
}

func (w *row) clear() {
	w.cells, w.marks, w.erasures = w.cells[:0], w.marks[:0], w.erasures[:0]
	w.cursor, w.lead, w.age = 0, none, 0
}

// move sets the cursor, within the line and its margin.
func (w *row) move(to int) {
	w.cursor = max(0, min(to, max(len(w.cells), margin)))
}

// put writes a character of so many columns at the cursor.
func (w *row) put(r rune, width int) {
	if w.cursor+width > widest || len(w.marks) >= widest {
		w.write()
		w.clear()
	}
	if width == 0 {
		w.attach(r)
		return
	}
	w.reserve(width)
	w.cells[w.cursor] = cell{r: r, marks: none, age: w.age}
	for i := 1; i < width; i++ {
		w.cells[w.cursor+i] = cell{r: rest, marks: none, age: w.age}
	}
	w.cursor += width
}

// tab is a character only at the end of the line, where it makes columns.
// Elsewhere it passes over what is there.
func (w *row) tab() {
	to := (w.cursor/tabStop + 1) * tabStop
	if w.cursor == len(w.cells) {
		w.put('\t', to-w.cursor)
		return
	}
	w.move(to)
}

// reserve makes the next columns free for one character.
func (w *row) reserve(width int) {
	w.fill(w.cursor)
	w.split(w.cursor)
	w.split(w.cursor + width)
	w.fill(w.cursor + width)
}

// fill makes blank columns up to end.
func (w *row) fill(end int) {
	for len(w.cells) < end {
		w.cells = append(w.cells, cell{r: blank, marks: none, age: w.age})
	}
}

// split blanks a character that lies on both sides of the border before at.
func (w *row) split(at int) {
	if at >= len(w.cells) || w.cells[at].r != rest {
		return
	}
	begin, end := at-1, at
	for w.cells[begin].r == rest {
		begin--
	}
	for end < len(w.cells) && w.cells[end].r == rest {
		end++
	}
	for i := begin; i < end; i++ {
		w.cells[i] = cell{r: blank, marks: none}
	}
}

// attach puts a mark on the character before the cursor.
func (w *row) attach(r rune) {
	ring := &w.lead
	if w.cursor > 0 {
		w.fill(w.cursor)
		at := w.cursor - 1
		for w.cells[at].r == rest {
			at--
		}
		if c := &w.cells[at]; c.r == blank || w.erased(at) {
			*c = cell{r: ' ', marks: none, age: w.age}
		}
		ring = &w.cells[at].marks
	}
	added := int32(len(w.marks))
	w.marks = append(w.marks, mark{r: r, next: added})
	if *ring != none {
		w.marks[added].next, w.marks[*ring].next = w.marks[*ring].next, added
	}
	*ring = added
}

// eraseRight erases from the cursor on.
func (w *row) eraseRight() {
	if w.cursor < len(w.cells) {
		w.split(w.cursor)
		w.cells = w.cells[:w.cursor]
	}
	if w.cursor == 0 {
		w.lead = none
	}
}

// eraseLeft erases up to the cursor, its column included.
func (w *row) eraseLeft() { w.eraseBelow(w.cursor + 1) }

// erase erases everything; the cursor stays.
func (w *row) erase() { w.eraseBelow(len(w.cells)) }

func (w *row) eraseBelow(end int) {
	w.split(end)
	w.lead = none
	for n := len(w.erasures); n > 0 && w.erasures[n-1].end <= int32(end); n-- {
		w.erasures = w.erasures[:n-1]
	}
	w.erasures = append(w.erasures, erasure{end: int32(end), age: w.age})
	w.age++
}

// erased says that a column was erased after it was written: by the widest of the
// later erasures, which is the first of them.
func (w *row) erased(at int) bool {
	if len(w.erasures) == 0 {
		return false
	}
	i := sort.Search(len(w.erasures), func(i int) bool { return w.erasures[i].age >= w.cells[at].age })
	return i < len(w.erasures) && int32(at) < w.erasures[i].end
}

// write appends what the line shows, without what is blank at its end.
func (w *row) write() {
	w.writeMarks(w.lead)
	blanks := 0
	for at, c := range w.cells {
		switch {
		case c.r == blank || w.erased(at):
			blanks++
		case c.r != rest:
			for ; blanks > 0; blanks-- {
				w.out.WriteByte(' ')
			}
			w.out.WriteRune(c.r)
			w.writeMarks(c.marks)
		}
	}
}

func (w *row) writeMarks(last int32) {
	if last == none {
		return
	}
	for at := w.marks[last].next; ; at = w.marks[at].next {
		w.out.WriteRune(w.marks[at].r)
		if at == last {
			return
		}
	}
}
