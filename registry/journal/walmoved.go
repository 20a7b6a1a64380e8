package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"syscall"
)

// movedLog reports whether the database has all that a log says whose head can't be
// read: the newest version of each page, up to the last commit. It takes the page size
// from the database.
func movedLog(log io.ReaderAt, database string) (bool, error) {
	db, err := os.OpenFile(database, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	var head [headerBytes]byte
	if _, err := db.ReadAt(head[:], 0); err != nil {
		return false, cutShort(err)
	}
	size := int(binary.BigEndian.Uint16(head[16:]))
	if size == 1 {
		size = mostPage
	}
	if size < leastPage || size&(size-1) != 0 {
		return false, nil
	}
	newest, err := newestPages(log, size)
	if err != nil || len(newest) == 0 {
		return false, err
	}
	said, has := make([]byte, size), make([]byte, size)
	for number, at := range newest {
		if _, err := log.ReadAt(said, at); err != nil {
			return false, cutShort(err)
		}
		if _, err := db.ReadAt(has, int64(number-1)*int64(size)); err != nil {
			return false, cutShort(err)
		}
		if !bytes.Equal(said, has) {
			return false, nil
		}
	}
	return true, nil
}

// newestPages gives where in a log the newest version of each page stands, of the frames
// that were written with the first one, up to the last commit.
func newestPages(log io.ReaderAt, size int) (map[uint32]int64, error) {
	newest, open := map[uint32]int64{}, map[uint32]int64{}
	var first, frame [frameHeader]byte
	for at := int64(walHeader); ; at += int64(frameHeader + size) {
		if _, err := log.ReadAt(frame[:], at); err != nil {
			if errors.Is(err, io.EOF) {
				return newest, nil
			}
			return nil, err
		}
		if at == walHeader {
			first = frame
		}
		number := binary.BigEndian.Uint32(frame[:])
		if number == 0 || !bytes.Equal(frame[8:16], first[8:16]) {
			return newest, nil
		}
		open[number] = at + frameHeader
		if commits(frame[:]) {
			maps.Copy(newest, open)
			clear(open)
		}
	}
}
