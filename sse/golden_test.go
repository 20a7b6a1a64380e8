package sse_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// TestGoldenSession holds every byte that one connection carries, from the status
// line to the last chunk, against a file. Each event has to be one chunk.
func TestGoldenSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{Heartbeat: time.Minute, LogSize: 4, LogMax: 1})
		defer b.end()
		add := func(agent, data string) {
			b.Append("s", sse.Notice{Key: data, Owner: agent, Agent: agent, Event: "task.done", Data: []byte(data)})
		}
		add("a", `{"text":"lost"}`)
		add("a", `{"text":"two"}`)
		add("a", `{"text":"withdrawn"}`)
		add("b", "{\n\"text\":\r\"four\",\r\n\"n\":4}")
		add("b", `{"text":"fünf 界"}`)
		b.Withdraw("s", `{"text":"withdrawn"}`)

		conn, err := b.net.dial(context.Background(), "", "")
		require.NoError(t, err)
		wire := make(chan string)
		go func() {
			defer close(wire)
			lines := bufio.NewReader(conn)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				wire <- line
			}
		}()
		_, err = fmt.Fprint(conn, "GET /?session=s HTTP/1.1\r\nHost: afoot\r\nLast-Event-ID: e-0\r\n\r\n")
		require.NoError(t, err)
		var got strings.Builder
		collect := func() {
			for {
				synctest.Wait()
				select {
				case line := <-wire:
					if !strings.HasPrefix(line, "Date:") {
						got.WriteString(line)
					}
				default:
					return
				}
			}
		}
		collect()
		b.Poke("s", "b")
		b.Poke("s", `"quoted"`)
		time.Sleep(time.Second)
		collect()
		b.PokeAll("")
		time.Sleep(time.Second)
		collect()
		time.Sleep(time.Minute)
		collect()
		add("a", "")
		b.Append("s", sse.Notice{Data: []byte("no name")})
		b.Append("s", sse.Notice{Event: "evil\ndata: x", Data: []byte("id: 7\r\rdata: y\n")})
		collect()
		closed := make(chan error)
		go func() { closed <- b.Close(context.Background(), sse.ByeShutdown) }()
		collect()
		require.NoError(t, <-closed)
		require.NoError(t, conn.Close())
		golden(t, "testdata/session.txt", got.String())
	})
}

var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, path, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\r\n", "<CRLF>\n")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
