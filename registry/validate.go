package registry

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate checks what the registry itself knows about a spec: a kind, a label
// that is nil or well formed, a limit that is nil or a positive safe integer.
func (s Spec) Validate() error {
	if s.Kind == "" {
		return Errorf(CodeInvalid, "kind must not be empty")
	}
	if s.Label != nil {
		if err := ValidateLabel(*s.Label); err != nil {
			return err
		}
	}
	if l := s.OutputLimitBytes; l != nil && (*l < 1 || *l > MaxSafeInteger) {
		return Errorf(CodeInvalid, "outputLimitBytes must be an integer from 1 to %d", int64(MaxSafeInteger))
	}
	return nil
}

// ValidateLabel refuses an empty label, one over [MaxLabelBytes], and one that is
// not one printable line of valid UTF-8.
func ValidateLabel(label string) error {
	if label == "" {
		return Errorf(CodeInvalid, "label must not be empty")
	}
	if len(label) > MaxLabelBytes {
		return Errorf(CodeInvalid, "label must not be longer than %d bytes", MaxLabelBytes)
	}
	if !utf8.ValidString(label) {
		return Errorf(CodeInvalid, "label must be valid UTF-8")
	}
	for _, r := range label {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return Errorf(CodeInvalid, "label must be one line without control characters")
		}
	}
	return nil
}

// MaxReasonBytes bounds the reason of a kill.
const MaxReasonBytes = 512

// ValidReason reports whether a reason, which may be empty, is not over [MaxReasonBytes]
// and has no control characters.
func ValidReason(reason string) bool {
	return len(reason) <= MaxReasonBytes && strings.IndexFunc(reason, unicode.IsControl) < 0
}

// Validate checks label and lease of a new agent.
func (o AgentOptions) Validate() error {
	if o.Label != nil {
		if err := ValidateLabel(*o.Label); err != nil {
			return err
		}
	}
	if o.Lease != nil && (*o.Lease < MinLease || *o.Lease > MaxLease) {
		return Errorf(CodeInvalid, "leaseMs must be an integer from %d to %d", MinLease.Milliseconds(), MaxLease.Milliseconds())
	}
	return nil
}
