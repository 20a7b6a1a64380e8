package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A caller that takes a whole answer and closes at once has had it, however long
// the answer is: nothing is told twice, and an end that was read is reported.
func TestH7TakenAndLeft(t *testing.T) {
	t.Parallel()
	const size, page, rounds = 12_000_000, 300_000, 40
	c := serve(t).as("h7-taken")
	id := c.start(t, `head -c 12000000 /dev/zero | tr '\0' o`).ID
	c.over(t, id)
	for round := range rounds {
		w, err := c.d.dial()
		require.NoError(t, err)
		require.NoError(t, w.ask(c, "/tasks/"+id+"/output?limit_bytes=300000"))
		res, err := http.ReadResponse(w.r, nil)
		require.NoError(t, err)
		var got struct {
			Offset int64
			Text   string
		}
		require.NoError(t, json.NewDecoder(res.Body).Decode(&got))
		require.NoError(t, w.conn.Close())
		require.Equal(t, int64(round*page), got.Offset)
		require.Len(t, got.Text, page)
	}
	c.reported(t, id) // the answer is known to be taken behind its last byte
	require.Empty(t, c.read(t, id, "").Text, "all %d bytes were taken", size)
}
