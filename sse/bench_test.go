package sse_test

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// idleServerEnv makes the test binary a server of idle streams.
const idleServerEnv = "SSE_TEST_IDLE_SERVER"

// bare is the least that an event stream over net/http can be.
func bare(wake <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		w.WriteHeader(http.StatusOK)
		for rc.Flush() == nil {
			select {
			case <-r.Context().Done():
				return
			case <-wake:
				fmt.Fprint(w, "id: e-1\ndata: {}\nevent: task.done\n\n")
			}
		}
	}
}

// serveIdle prints its address, and for every line on its input how much memory
// it has: as it is, and after a collection.
func serveIdle(mode string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: bare(nil)}
	if mode == "hub" {
		hub := sse.NewHub(sse.Config{MaxStreamsPerSession: 100})
		server.Handler = handler(hub)
	}
	go func() { _ = server.Serve(l) }()
	fmt.Fprintln(os.Stdout, l.Addr())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		asIs := resident()
		runtime.GC()
		debug.FreeOSMemory()
		fmt.Fprintln(os.Stdout, asIs, resident(), runtime.NumGoroutine())
	}
}

func resident() (bytes int) {
	var size, pages int
	statm, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(statm), &size, &pages)
	}
	if err != nil {
		log.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// BenchmarkIdle reports what an idle stream costs the process that serves it.
func BenchmarkIdle(b *testing.B) {
	const streams = 10_000
	for _, mode := range []string{"bare", "hub"} {
		b.Run(mode, func(b *testing.B) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), idleServerEnv+"="+mode)
			in, err := cmd.StdinPipe()
			require.NoError(b, err)
			out, err := cmd.StdoutPipe()
			require.NoError(b, err)
			cmd.Stderr = os.Stderr
			require.NoError(b, cmd.Start())
			defer func() {
				require.NoError(b, in.Close())
				require.NoError(b, cmd.Wait())
			}()
			var addr string
			_, err = fmt.Fscanln(out, &addr)
			require.NoError(b, err)
			measure := func() (asIs, collected, goroutines int) {
				_, err = fmt.Fprintln(in)
				require.NoError(b, err)
				_, err = fmt.Fscanln(out, &asIs, &collected, &goroutines)
				require.NoError(b, err)
				return asIs, collected, goroutines
			}
			for b.Loop() {
				asIs0, collected0, _ := measure()
				conns := make([]net.Conn, streams)
				for i := range conns {
					conns[i], err = net.Dial("tcp", addr)
					require.NoError(b, err)
					_, err = fmt.Fprintf(conns[i], "GET /?session=s%d HTTP/1.1\r\nHost: afoot\r\nAuthorization: Bearer %0300d\r\n\r\n", i, i)
					require.NoError(b, err)
					_, err = conns[i].Read(make([]byte, 512))
					require.NoError(b, err)
				}
				asIs, collected, goroutines := measure()
				b.ReportMetric(float64(asIs-asIs0)/streams/1024, "KiB/stream")
				b.ReportMetric(float64(collected-collected0)/streams/1024, "KiB/stream-collected")
				b.ReportMetric(float64(goroutines)/streams, "goroutines/stream")
				for _, c := range conns {
					require.NoError(b, c.Close())
				}
			}
		})
	}
}

// BenchmarkNotice is the way from an append to the client, beside the same event
// from a bare handler.
func BenchmarkNotice(b *testing.B) {
	read := func(b *testing.B, server *httptest.Server, send func()) {
		defer server.Close()
		resp, err := server.Client().Get(server.URL + "/?session=s")
		require.NoError(b, err)
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewReader(resp.Body)
		for b.Loop() {
			send()
			for line := ""; line != "\n"; {
				line, err = lines.ReadString('\n')
				require.NoError(b, err)
			}
		}
	}
	b.Run("bare", func(b *testing.B) {
		wake := make(chan struct{})
		read(b, httptest.NewServer(bare(wake)), func() { wake <- struct{}{} })
	})
	b.Run("hub", func(b *testing.B) {
		hub := sse.NewHub(sse.Config{Epoch: "e"})
		read(b, httptest.NewServer(handler(hub)), func() {
			hub.Append("s", sse.Notice{Key: "k", Owner: "o", Agent: "a", Event: "task.done", Data: []byte("{}")})
		})
	})
}
