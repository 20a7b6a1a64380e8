package bash

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescriptionIsTheRequest(t *testing.T) {
	for _, command := range []string{"true", `a "quoted" \ one`, `\`, `\"`, "one line\nanother", "\x00é", strings.Repeat("x", 3000)} {
		r := request{command: command, workdir: `/a"b`}
		d, err := r.describe()
		require.NoError(t, err)
		var shown struct{ Command, Workdir string }
		require.NoError(t, json.Unmarshal(d.json(), &shown))
		require.Equal(t, command, shown.Command)
		require.Equal(t, r.workdir, shown.Workdir)
		require.Len(t, d.json(), d.size())
		require.False(t, d.alone())
		require.Equal(t, d, newDescription(d.json()))

		other, err := (&request{command: "another", workdir: r.workdir}).describe()
		require.NoError(t, err)
		require.Equal(t, d.rest, other.rest)
	}
}

func TestDescriptionOfAnythingElse(t *testing.T) {
	for _, text := range []string{"{}", `{"command":1}`, `{"command":`, `{"command":"`, `{"command":"a`, `{"command":"\"`, `{"workdir":"/","command":"x"}`} {
		d := newDescription([]byte(text))
		require.True(t, d.alone())
		require.Equal(t, text, string(d.json()))
		require.Len(t, text, d.size())
	}
	require.True(t, newDescription(nil).none())
	require.Nil(t, newDescription(nil).json())
}
