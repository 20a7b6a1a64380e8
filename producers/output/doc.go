// Package output keeps one byte stream on disk from its first byte, bounded and
// readable by offset. It never knows what the bytes mean, nor whose they are.
//
// A [Log] is written by one pump ([Log.Drain]) and read by any number of
// readers, while it grows and after its end. Offsets count raw bytes from the
// first one on and never change meaning. A log's file is a ring: beyond the
// store's bound the newest bytes take the room of the oldest, so the file never
// gets longer than the bound, on any file system, and [Log.Size] says how many
// bytes are gone. The kept bytes of all logs are counted; [Store.Room] refuses
// when they are too many.
//
// Whatever happens to the disk, the pipe is emptied: the work at its other end
// neither blocks nor dies of it. A full disk gets room from the log's own oldest
// bytes. Where a write fails all the same, what was kept stays readable, and what
// comes is lost and counted as gone; a reader who comes to the end of what was kept
// is moved over it. As soon as a write succeeds the log begins anew there, since
// what is kept is one range and the newest is what it is for. A file that was cut
// short or removed meanwhile is begun anew too, and what is missing after the end
// counts as gone; it is never read as zeros.
// [Log.Loss] has the first reason, which is logged once.
//
// After [Log.End] a log holds no goroutine, no descriptor and no buffer.
package output
