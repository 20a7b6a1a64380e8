// Package output keeps one byte stream on disk from its first byte, bounded and
// readable by offset. It never knows what the bytes mean, nor whose they are.
//
// A [Log] is written by one pump ([Log.Drain]) and read by any number of
// readers, while it grows and after its end. Offsets count raw bytes from the
// first one on and never change meaning: they are the offsets in the file too.
// Over the store's bound the oldest bytes are given back to the disk, in steps,
// and [Log.Size] says how many are gone. Whatever happens to the disk, the
// pipe is emptied: the work at its other end neither blocks nor dies of it, and
// what could not be kept is counted as dropped.
//
// After [Log.End] a log holds no goroutine, no descriptor and no buffer.
package output
