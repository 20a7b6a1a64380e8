package api

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"afoot/api/wire"
	"afoot/registry"
)

// FuzzDecodeSpec: whatever is accepted has a kind, members for the producer that are
// one JSON object without those of the head, and a fingerprint.
func FuzzDecodeSpec(f *testing.F) {
	for _, s := range []string{
		`{"kind":"bash","command":"x"}`, `{"kind":"bash","label":"é","outputLimitBytes":9,"env":{"A":[1e3,null]}}`,
		`{"\u006bind":"bash"}`, `{"kind":"bash"}{}`, `[]`, `null`, ``, `{"kind":"b","x":"\ud83d\ude00"}`, "{\"kind\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		spec, err := decodeSpec(body)
		if err != nil {
			require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
			require.True(t, utf8.ValidString(problemOf(err).detail))
			return
		}
		require.NotEmpty(t, spec.Kind)
		require.True(t, json.Valid(body))
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(spec.Fields, &fields), "%s", spec.Fields)
		for _, name := range []string{"kind", "label", "outputLimitBytes"} {
			require.NotContains(t, fields, name)
		}
		_, err = fingerprint("", body)
		require.NoError(t, err)
	})
}

// FuzzDecode: a body never breaks the daemon, and each refusal is a sentence.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"label":"a","leaseMs":1000}`, `{"label":null}`, `{"a":{"b":[1,{"c":`, `{"leaseMs":1e999}`, "\"\xc3", `{"\ud800":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var req wire.AgentRequest
		if err := decode(body, &req); err != nil {
			require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
			require.True(t, utf8.ValidString(problemOf(err).detail))
		}
	})
}
