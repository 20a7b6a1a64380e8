package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ListenInfo is what a running daemon leaves in its state directory, so that
// commands on the same machine find it. It holds no secret, only the place of
// one.
type ListenInfo struct {
	PID int `json:"pid"`
	// Addr is what the daemon listens on, in the form of AFOOT_ADDR.
	Addr string `json:"addr"`
	// URL is where the page and the API are; for a socket, the Host to use.
	URL        string `json:"url"`
	SecretFile string `json:"secretFile"`
	// Issuer and Audience are what the daemon's tokens carry, if it was told.
	Issuer   string `json:"issuer,omitempty"`
	Audience string `json:"audience,omitempty"`
	// TLSCert is the certificate that the daemon shows, if it does TLS.
	TLSCert string `json:"tlsCert,omitempty"`
}

// write puts the file in place in one step: readers see the old or the new one.
func (i ListenInfo) write(dir string) error {
	text, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("listen file: %w", err)
	}
	return writeWhole(dir, listenName, append(text, '\n'))
}

// writeWhole puts a file in place in one step, with mode 0600. On a full disk the room of
// one that is there is used again.
func writeWhole(dir, name string, text []byte) error {
	err := replaceWhole(dir, name, text)
	if noRoom(err) && writeOver(filepath.Join(dir, name), text) == nil {
		return nil
	}
	return err
}

// writeOver writes over a file that is there and has room.
func writeOver(path string, text []byte) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() == 0) {
		err = unix.ENOSPC
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	return errors.Join(err, f.Close())
}

func replaceWhole(dir, name string, text []byte) error {
	temp, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return fmt.Errorf("%s file: %w", name, err)
	}
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Chmod(0o600), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("%s file: %w", name, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

// readListenInfo finds the daemon of a state directory. It says os.ErrNotExist
// where none runs.
func readListenInfo(dir string) (ListenInfo, error) {
	var info ListenInfo
	text, err := os.ReadFile(filepath.Join(dir, listenName))
	if err != nil {
		return info, fmt.Errorf("listen file: %w", err)
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, fmt.Errorf("listen file in %s: %w", dir, err)
	}
	return info, nil
}

// removeListenInfo takes the file away if it is still this process's.
func removeListenInfo(dir string) error {
	info, err := readListenInfo(dir)
	if err != nil || info.PID != os.Getpid() {
		return nil //nolint:nilerr // nothing of ours is there
	}
	return os.Remove(filepath.Join(dir, listenName))
}
