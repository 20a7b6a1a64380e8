package output

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// processor gives the seconds of processor time that this process used.
func processor(t testing.TB) float64 {
	t.Helper()
	var use syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

// pour runs a writer of so many bytes into the log.
func pour(t testing.TB, log *Log, bytes int64) {
	t.Helper()
	r, w := newPipe(t)
	writer := exec.CommandContext(t.Context(), "head", "-c", strconv.FormatInt(bytes, 10), "/dev/zero")
	writer.Stdout = w
	require.NoError(t, writer.Start())
	require.NoError(t, w.Close())
	require.NoError(t, log.Drain(r))
	require.NoError(t, writer.Wait())
	require.NoError(t, r.Close())
}

// follow sends the log to a client until it ends, and gives a channel with the
// number of sent bytes.
func follow(t testing.TB, log *Log) <-chan int64 {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	client := exec.CommandContext(t.Context(), "bash", "-c", "exec cat < /dev/tcp/127.0.0.1/"+port+" > /dev/null")
	client.Stderr = os.Stderr
	require.NoError(t, client.Start())
	conn, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	socket, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	reader, err := log.Open()
	require.NoError(t, err)
	done := make(chan int64, 1)
	go func() {
		defer close(done)
		sent := int64(0)
		for {
			_, next, ended := reader.Bounds()
			for sent < next {
				n, err := reader.SendTo(socket, sent, next-sent)
				if sent += n; err != nil {
					// Whoever is slower than a bounded log loses.
					if !errors.Is(err, ErrDropped) {
						t.Error(err)
					}
					_, _, _ = conn.Close(), reader.Close(), client.Wait()
					done <- sent
					return
				}
			}
			if ended {
				break
			}
			<-reader.Grown(sent)
		}
		_, _ = conn.Close(), reader.Close()
		_ = client.Wait()
		done <- sent
	}()
	return done
}

// BenchmarkPour measures the processor time of a command that prints a GiB as fast
// as it can, with what its client costs.
func BenchmarkPour(b *testing.B) {
	const size = 1 << 30
	for _, c := range []struct {
		name     string
		bound    int64
		followed bool
	}{
		{"bounded", 0, false}, {"bounded, followed", 0, true}, {"whole", 2 * size, false}, {"whole, followed", 2 * size, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			used, sent := 0.0, 0.0
			for b.Loop() {
				log := newLog(b, newStore(b, c.bound))
				before := processor(b)
				var done <-chan int64
				if c.followed {
					done = follow(b, log)
				}
				pour(b, log, size)
				log.End()
				if c.followed {
					sent += float64(<-done)
				}
				used += processor(b) - before
				require.NoError(b, log.Remove())
			}
			b.ReportMetric(used/float64(b.N), "cpu-s/GiB")
			b.ReportMetric(sent/float64(b.N)/(1<<20), "MiB-sent")
		})
	}
}
