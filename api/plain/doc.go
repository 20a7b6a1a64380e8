// Package plain turns what a program wrote for a terminal into the text that the
// terminal would show in the end: without control sequences, and of a line that
// was written over again and again only its last state.
//
// Each line stands for itself: no state passes a newline, so the text is the same
// however the bytes were cut into reads. What moves the cursor to other lines is
// left out. Time and memory are linear in the input, whatever it holds.
package plain
