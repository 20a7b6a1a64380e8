package registry_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestCodeOf(t *testing.T) {
	refusal := registry.Errorf(registry.CodeGone, "task %s was removed", "bash-1")
	for name, c := range map[string]struct {
		err  error
		want registry.Code
	}{
		"nil":              {nil, ""},
		"own":              {refusal, registry.CodeGone},
		"wrapped":          {fmt.Errorf("start: %w", refusal), registry.CodeGone},
		"joined":           {errors.Join(io.EOF, refusal), registry.CodeGone},
		"outermost counts": {registry.Wrap(registry.CodeConflict, refusal, "no"), registry.CodeConflict},
		"foreign":          {io.EOF, registry.CodeInternal},
	} {
		require.Equal(t, c.want, registry.CodeOf(c.err), name)
	}
}

func TestErrorf(t *testing.T) {
	e := registry.Errorf(registry.CodeInvalid, "field %q is %d", "limit", 0)
	require.Equal(t, `field "limit" is 0`, e.Message)
	require.Equal(t, `invalid: field "limit" is 0`, e.Error())
	require.NoError(t, e.Unwrap())
	require.Zero(t, e.RetryAfter)
	require.Empty(t, e.Limit)
}

func TestWrapKeepsTheCauseOutOfTheMessage(t *testing.T) {
	e := registry.Wrap(registry.CodeInternal, io.ErrUnexpectedEOF, "task %s is lost", "bash-1")
	require.Equal(t, "task bash-1 is lost", e.Message)
	require.NotContains(t, e.Message, io.ErrUnexpectedEOF.Error())
	require.Equal(t, "internal: task bash-1 is lost: unexpected EOF", e.Error())
	require.ErrorIs(t, e, io.ErrUnexpectedEOF)
}

func TestErrorIsFoundInAChain(t *testing.T) {
	refusal := &registry.Error{Code: registry.CodeLimitReached, Message: "full", Limit: "AFOOT_MAX_TASKS"}
	var got *registry.Error
	require.ErrorAs(t, fmt.Errorf("start: %w", refusal), &got)
	require.Same(t, refusal, got)
}
