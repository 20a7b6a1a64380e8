package registry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestValidateLabel(t *testing.T) {
	for _, label := range []string{
		"x", " ", "make test", "日本語", "e\u0301", "🙂", "zero\u200dwidth", strings.Repeat("x", registry.MaxLabelBytes),
	} {
		require.NoError(t, registry.ValidateLabel(label), "%q", label)
	}
	for _, label := range []string{
		"", "\n", "a\nb", "a\rb", "\t", "\x00", "\x1b[0m", "\x7f", "\u0085", "\u009f", "\u2028", "\u2029",
		"\xff", "half \xe2\x82", strings.Repeat("x", registry.MaxLabelBytes+1), strings.Repeat("é", registry.MaxLabelBytes/2) + "x",
	} {
		require.Equal(t, registry.CodeInvalid, registry.CodeOf(registry.ValidateLabel(label)), "%q", label)
	}
}

func TestValidReason(t *testing.T) {
	for _, good := range []string{"", "enough", strings.Repeat("x", registry.MaxReasonBytes)} {
		require.True(t, registry.ValidReason(good), good)
	}
	for _, bad := range []string{"a\nb", "\x1b", strings.Repeat("x", registry.MaxReasonBytes+1)} {
		require.False(t, registry.ValidReason(bad), bad)
	}
}

func TestValidateSpec(t *testing.T) {
	label, empty := "label", ""
	limit := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		spec registry.Spec
		ok   bool
	}{
		"plain":         {registry.Spec{Kind: "bash"}, true},
		"full":          {registry.Spec{Kind: "bash", Label: &label, OutputLimitBytes: limit(1)}, true},
		"largest limit": {registry.Spec{Kind: "bash", OutputLimitBytes: limit(registry.MaxSafeInteger)}, true},
		"no kind":       {registry.Spec{}, false},
		"empty label":   {registry.Spec{Kind: "bash", Label: &empty}, false},
		"zero limit":    {registry.Spec{Kind: "bash", OutputLimitBytes: limit(0)}, false},
		"minus one":     {registry.Spec{Kind: "bash", OutputLimitBytes: limit(-1)}, false},
		"unsafe limit":  {registry.Spec{Kind: "bash", OutputLimitBytes: limit(registry.MaxSafeInteger + 1)}, false},
	} {
		err := c.spec.Validate()
		if c.ok {
			require.NoError(t, err, name)
		} else {
			require.Equal(t, registry.CodeInvalid, registry.CodeOf(err), name)
		}
	}
}

func TestValidateAgentOptions(t *testing.T) {
	label, bad := "label", "two\nlines"
	lease := func(d time.Duration) *time.Duration { return &d }
	for name, c := range map[string]struct {
		options registry.AgentOptions
		ok      bool
	}{
		"none":           {registry.AgentOptions{}, true},
		"full":           {registry.AgentOptions{Label: &label, Lease: lease(time.Minute)}, true},
		"shortest lease": {registry.AgentOptions{Lease: lease(registry.MinLease)}, true},
		"longest lease":  {registry.AgentOptions{Lease: lease(registry.MaxLease)}, true},
		"bad label":      {registry.AgentOptions{Label: &bad}, false},
		"no lease":       {registry.AgentOptions{Lease: lease(0)}, false},
		"short lease":    {registry.AgentOptions{Lease: lease(registry.MinLease - 1)}, false},
		"long lease":     {registry.AgentOptions{Lease: lease(registry.MaxLease + 1)}, false},
	} {
		err := c.options.Validate()
		if c.ok {
			require.NoError(t, err, name)
		} else {
			require.Equal(t, registry.CodeInvalid, registry.CodeOf(err), name)
		}
	}
}
