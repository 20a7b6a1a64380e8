package bash

import (
	"errors"
	"io"
	"os"
	"strings"
)

// loader runs a command that is too long for an argument: it reads descriptor 3
// to its end, closes it, and evaluates it in a shell that is otherwise the same
// as for a short command ($0, $#, $LINENO, descriptors, standard input).
const loader = `IFS= read -rd "" -u 3 AFOOT_COMMAND; exec 3<&-; eval "unset -v AFOOT_COMMAND; $AFOOT_COMMAND"`

// newScript gives a file without a name that holds the command.
func newScript(command string) (*os.File, error) {
	file, err := nameless()
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(file, strings.NewReader(command))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
