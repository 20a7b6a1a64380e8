package api_test

import (
	"net/http"
	"testing"

	"afoot/api/wire"
	"afoot/registry/registrytest"
)

func TestSplitTask(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{Split: true})
	work.Output.Append("out\n")
	work.Stderr.Append("0123err")
	work.Stderr.Drop(4)

	look := into[wire.TaskRead](w.get("/tasks/bash-1/output?offset=0&stream=stderr").ok(http.StatusOK))
	w.is.Equal("err", look.Text)
	w.is.EqualValues(4, look.Offset)
	w.is.EqualValues(4, look.DroppedBytes)
	w.is.Nil(look.Stderr)
	w.is.Nil(into[wire.TaskRead](w.get("/tasks/bash-1/output?offset=0").ok(http.StatusOK)).Stderr)
	w.is.Equal("[4 bytes of older output were dropped]\nerr\n[status: running]",
		string(w.get("/tasks/bash-1/output?offset=0&stream=stderr", "Accept", "text/plain").body))

	read := into[wire.TaskRead](w.get("/tasks/bash-1/output").ok(http.StatusOK))
	w.is.Equal("out\n", read.Text)
	w.is.EqualValues(4, read.NextOffset)
	w.is.Equal(&wire.StreamRead{Text: "err", Offset: 4, NextOffset: 7, DroppedBytes: 4}, read.Stderr)
	read = into[wire.TaskRead](w.get("/tasks/bash-1/output").ok(http.StatusOK))
	w.is.Empty(read.Text)
	w.is.Empty(read.Stderr.Text)

	work.Stderr.Append("more\n")
	work.Output.Append("tail")
	w.is.Equal("more\n", into[wire.TaskRead](w.get("/tasks/bash-1/output?stream=stderr").ok(http.StatusOK)).Text)
	work.Stderr.Append("last\n")
	work.Complete("exit code: 0")
	w.is.Equal("tail\n[stderr]\nlast\n[status: completed, exit code: 0]", string(w.get("/tasks/bash-1/output", "Accept", "text/plain").ok(http.StatusOK).body))
	read = into[wire.TaskRead](w.get("/tasks/bash-1/output").ok(http.StatusOK))
	w.is.True(read.Eof)
	w.is.True(read.Stderr.Eof)
	w.is.Equal("(no new output)\n[status: completed, exit code: 0]", string(w.get("/tasks/bash-1/output", "Accept", "text/plain").body))

	log := w.get("/tasks/bash-1/log?stream=stderr").ok(http.StatusOK)
	w.is.Equal("errmore\nlast\n", string(log.body))
	w.is.Equal(`attachment; filename="bash-1.stderr.log"`, log.header.Get("Content-Disposition"))
	w.is.Equal("out\ntail", string(w.get("/tasks/bash-1/log?stream=stdout").ok(http.StatusOK).body))
	w.get("/tasks/bash-1/log?stream=stdin").refused(http.StatusBadRequest, "invalid")
	w.get("/tasks/bash-1/output?stream=").refused(http.StatusBadRequest, "invalid")

	w.ended("x")
	for _, path := range []string{"/output?stream=stderr", "/output?stream=stderr&offset=0", "/log?stream=stderr", "/events?stream=stderr"} {
		w.get("/tasks/bash-2"+path).refused(http.StatusBadRequest, "invalid")
	}
}
