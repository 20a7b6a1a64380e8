package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wire is a bare TCP connection to the daemon, for requests that no HTTP library
// would send and for cuts that none would make.
type wire struct {
	conn *net.TCPConn
	r    *bufio.Reader
}

func (d *daemon) dial() (*wire, error) {
	conn, err := net.DialTimeout("tcp", d.addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(patient(60 * time.Second))); err != nil {
		return nil, err
	}
	return &wire{conn: conn.(*net.TCPConn), r: bufio.NewReader(conn)}, nil
}

// ask sends a GET with the client's token and leaves the answer to be read.
func (w *wire) ask(c *client, path string, headers ...string) error {
	lines := append([]string{"GET " + path + " HTTP/1.1", "Host: " + c.d.addr, "Authorization: Bearer " + c.token}, headers...)
	_, err := io.WriteString(w.conn, strings.Join(lines, "\r\n")+"\r\n\r\n")
	return err
}

// cut resets the connection: nothing more is sent or taken.
func (w *wire) cut() error {
	if err := w.conn.SetLinger(0); err != nil {
		return err
	}
	return w.conn.Close()
}

// raw sends bytes as they are and gives the whole answer.
func (d *daemon) raw(t *testing.T, request string) *answer {
	t.Helper()
	w, err := d.dial()
	require.NoError(t, err)
	defer func() { _ = w.conn.Close() }()
	require.NoError(t, w.conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(w.conn, request)
	require.NoError(t, err)
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(w.r, &http.Request{Method: method})
	require.NoError(t, err, "answer to %.200q", request)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return &answer{status: res.StatusCode, header: res.Header, body: body}
}

// bare writes a request of lines; a body, if any, is only announced by the lines.
func bare(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

// bearer is the header line with the client's token.
func (c *client) bearer() string { return "Authorization: Bearer " + c.token }
