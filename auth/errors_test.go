package auth

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChallenge(t *testing.T) {
	_, absent := bearer(http.Header{})
	require.Equal(t, `Bearer realm="afoot"`, requireKind(t, KindUnauthenticated, absent).Challenge())

	bad := unauthenticated("the token has expired")
	require.Equal(t, `Bearer realm="afoot", error="invalid_token", error_description="the token has expired"`, bad.Challenge())

	odd := unauthenticated("a \"quoted\" \\ thing\r\nX: y\u00e9")
	require.Equal(t, `Bearer realm="afoot", error="invalid_token", error_description="a 'quoted' ' thing''X: y'"`, odd.Challenge())

	narrow := requireKind(t, KindForbidden, Principal{Scopes: TasksRead}.Require(TasksWrite))
	require.Equal(t, `Bearer realm="afoot", error="insufficient_scope", error_description="`+narrow.Message+`", scope="tasks:write"`, narrow.Challenge())

	require.Equal(t, `Bearer realm="afoot"`, refuse(KindForeignHost, "x").Challenge())
}

func TestErrorIsFoundThroughWrapping(t *testing.T) {
	cause := errors.New("disk")
	e := &Error{Kind: KindInvalid, Message: "no", Cause: cause}
	wrapped := fmt.Errorf("outer: %w", e)
	require.Equal(t, KindInvalid, requireKind(t, KindInvalid, wrapped).Kind)
	require.ErrorIs(t, wrapped, cause)
	require.Equal(t, "invalid: no: disk", e.Error())
	require.Equal(t, "invalid: no", refuse(KindInvalid, "no").Error())
}

func TestScopes(t *testing.T) {
	tests := map[string]struct {
		set                  Scopes
		read, write, metrics bool
	}{
		"":                               {0, false, false, false},
		"tasks:read":                     {TasksRead, true, false, false},
		"tasks:write":                    {TasksWrite, true, true, false},
		"metrics":                        {Metrics, false, false, true},
		"tasks:read tasks:write metrics": {TasksRead | TasksWrite | Metrics, true, true, true},
	}
	for text, tt := range tests {
		t.Run(text, func(t *testing.T) {
			set, err := ParseScopes(text)
			require.NoError(t, err)
			require.Equal(t, tt.set, set)
			require.Equal(t, text, set.String())
			require.Equal(t, tt.read, set.Has(TasksRead))
			require.Equal(t, tt.write, set.Has(TasksWrite))
			require.Equal(t, tt.metrics, set.Has(Metrics))
			require.Equal(t, tt.read && tt.metrics, set.Has(TasksRead|Metrics))
			if tt.write {
				require.NoError(t, Principal{Scopes: set}.Require(TasksWrite))
			} else {
				requireKind(t, KindForbidden, Principal{Scopes: set}.Require(TasksWrite))
			}
		})
	}
	set, err := ParseScopes("metrics tasks:all tasks:read")
	require.Equal(t, Metrics|TasksRead, set, "the known ones all the same")
	require.Contains(t, requireKind(t, KindInvalid, err).Message, `"tasks:all" is unknown`)
}
