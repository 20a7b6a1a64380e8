// Package render has the exact words that a model reads about tasks, and the
// rules by which a text is fitted into a limit.
//
// It is pure: no clock, no network, no state. Limits count UTF-8 bytes and bound
// the whole text; a limit of zero is no limit. Given valid UTF-8 every text is
// valid UTF-8, no character is ever cut. It never words errors, JSON or HTTP.
package render
