package render_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"afoot/api/render"
	"afoot/registry"
)

// FuzzFit proves for every text that it is within its limit, cuts no character,
// and is whole when there is room.
func FuzzFit(f *testing.F) {
	for _, limit := range []int64{0, 1, 8, 20, 30, 32, 47, 48, 64, 80, 4096} {
		f.Add("界🜁éx\n", "exit code: 3", "label 界", "bash", int64(7), limit)
		f.Add("cut\n[output truncated]\n", "", "", "pty", int64(0), limit)
	}
	f.Fuzz(func(t *testing.T, text, detail, label, kind string, skipped, limit int64) {
		if limit < 0 {
			limit = -(limit + 1)
		}
		for _, s := range []*string{&text, &detail, &label, &kind} {
			*s = strings.ToValidUTF8(*s, "?")
		}
		s := registry.Snapshot{
			ID: registry.NewID(registry.Kind(kind), 12), Kind: registry.Kind(kind), Label: label,
			Detail: detail, Status: registry.StatusCompleted, OutputLimitBytes: limit,
		}
		free := s
		free.OutputLimitBytes = 0
		read := registry.Read{Text: text, Skipped: skipped, Snapshot: s}
		whole := registry.Read{Text: text, Skipped: skipped, Snapshot: free}
		second := &registry.Piece{Text: detail, Skipped: skipped / 2}
		both, bothWhole := read, whole
		both.Stderr, bothWhole.Stderr = second, second
		command := render.Command{Output: text, Skipped: skipped, Log: label, Signal: detail, ExitCode: int(skipped % 256)}
		goesOn, well := command, render.Command{Output: text, Log: label}
		goesOn.Running = s.ID
		for _, c := range []struct{ name, bounded, free string }{
			{"read", render.Read(read), render.Read(whole)},
			{"read of both", render.Read(both), render.Read(bothWhole)},
			{"notice", render.Notice(s), render.Notice(free)},
			{"kill", render.Kill(registry.KillAlreadyFinished, s), render.Kill(registry.KillAlreadyFinished, free)},
			{"started", render.Started(s), render.Started(free)},
			{"fit", render.Fit(text, limit), text},
			{"command", render.Bash(command, limit), render.Bash(command, 0)},
			{"command that goes on", render.Bash(goesOn, limit), render.Bash(goesOn, 0)},
			{"command that went well", render.Bash(well, limit), render.Bash(well, 0)},
		} {
			fits := limit == 0 || int64(len(c.free)) <= limit
			switch {
			case !utf8.ValidString(c.bounded):
				t.Errorf("%s: not valid UTF-8: %q", c.name, c.bounded)
			case limit > 0 && int64(len(c.bounded)) > limit:
				t.Errorf("%s: %d bytes in a limit of %d", c.name, len(c.bounded), limit)
			case fits && c.bounded != c.free:
				t.Errorf("%s: %q had room for %q", c.name, c.bounded, c.free)
			case !fits && c.bounded == "":
				t.Errorf("%s: nothing is left in %d bytes of %q", c.name, limit, c.free)
			}
		}
		if line := render.StatusLine(s); int64(len("\n[output truncated]\n")+len(line)) <= limit && !strings.HasSuffix(render.Read(read), "\n"+line) {
			t.Errorf("the status line is lost: %q", render.Read(read))
		}
	})
}
