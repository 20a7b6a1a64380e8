package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// previousSuffix names the file of old secrets beside the current one.
const previousSuffix = ".previous"

// maxPrevious bounds the secrets kept beside the current one.
const maxPrevious = 8

// RotateSecret replaces the secret by a new one and lets the old one verify for
// keep more (it signs nothing more). Older ones that were still good end with it
// at the latest, so keep 0 ends everything at once. Running authorities notice by
// themselves. Rotations of one file wait for each other.
func RotateSecret(path string, keep time.Duration) error {
	if keep < 0 {
		return refuse(KindInvalid, "the time to keep the old secret must not be negative")
	}
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.close()
	if err := dir.lock(); err != nil {
		return err
	}
	current, err := LoadSecret(path)
	if err != nil {
		return err
	}
	old, err := loadPrevious(path + previousSuffix)
	if err != nil {
		return err
	}
	// The old ones are safe on disk before the new one takes over: a crash between
	// the two steps loses nothing.
	name := filepath.Base(path)
	if err := keepPrevious(dir, name+previousSuffix, retire(current, old, time.Now(), keep)); err != nil {
		return err
	}
	return dir.place(name, newSecret(), true)
}

// oldSecret is a secret that still verifies until NotAfter.
type oldSecret struct {
	Secret   []byte    `json:"secret"`
	NotAfter time.Time `json:"notAfter"`
}

type previousFile struct {
	Secrets []oldSecret `json:"secrets"`
}

// retire puts current in front of the old secrets and ends all by now+keep.
func retire(current []byte, old []oldSecret, now time.Time, keep time.Duration) []oldSecret {
	end := now.Add(keep)
	kept := []oldSecret{{Secret: current, NotAfter: end.UTC()}}
	for _, o := range old {
		if bytes.Equal(o.Secret, current) {
			continue // Left by a rotation that was cut short.
		}
		if o.NotAfter.After(end) {
			o.NotAfter = end.UTC()
		}
		kept = append(kept, o)
	}
	live := kept[:0]
	for _, o := range kept {
		if now.Before(o.NotAfter) && len(live) < maxPrevious {
			live = append(live, o)
		}
	}
	return live
}

func keepPrevious(dir *folder, name string, old []oldSecret) error {
	if len(old) == 0 {
		return dir.remove(name)
	}
	data, err := json.Marshal(previousFile{Secrets: old})
	if err != nil {
		return err
	}
	return dir.place(name, append(data, '\n'), true)
}

// loadPrevious gives the old secrets, also expired ones; none if there is no file.
func loadPrevious(path string) ([]oldSecret, error) {
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f previousFile
	if json.Unmarshal(data, &f) != nil {
		return nil, fmt.Errorf("the file of old secrets %s is damaged: remove it, and tokens of older secrets end", path)
	}
	return f.Secrets, nil
}
