package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's tour and its commands run as they are pasted: one shell, block after
// block, from the top of the checkout. Only the variables that say where the daemon
// is are set.
func TestReadmeTour(t *testing.T) {
	for _, tool := range []string{"curl", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("THE README'S TOUR IS NOT TESTED: there is no %s here", tool)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)

	r := newRig(t)
	r.serve()
	listens := regexp.MustCompile(`afoot listens on (\S+)`).FindStringSubmatch(r.out.String())
	require.NotNil(t, listens)
	place, err := url.Parse(listens[1])
	require.NoError(t, err)

	checkout := filepath.Join(r.home, "checkout")
	require.NoError(t, os.MkdirAll(filepath.Join(checkout, "bin"), 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(checkout, "bin", "afoot")))
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "Makefile"), makefile, 0o600))

	// What each block has to print, in order. A new block needs a new line here.
	says := map[string][]string{
		"Two minutes with curl": {
			``,
			`"text":"hello\\n".*exit code: 3`,
			`"id":"bash-\d+".*"label":"three steps"`,
			`(?s)^\s*\{"text":.*\n\[status: completed, exit code: 0\]\n`,
			`(?s)step 1\\nstep 2\\nstep 3\\n.*\nstep 1\nstep 2\nstep 3\n`,
			`(?s)"outcome":"requested".*\[status: killed, signal: SIGTERM\]`,
			`(?s)"label":"told".*data: .*bash: told.*\nevent: task\.done\n`,
		},
		"The command": {
			`(?s)list the targets.*\n/[^a-z\n]+\nbash-\d+\n.*STATUS.*running.*\nhttp://\S+`,
		},
	}
	for _, title := range []string{"Two minutes with curl", "The command"} {
		blocks := shellBlocks(t, string(readme), title)
		require.Len(t, blocks, len(says[title]), title)
		const mark = "=== the next block ==="
		cmd := exec.Command("bash", "-c", strings.Join(blocks, "\necho; echo '"+mark+"'\n"))
		cmd.Dir = checkout
		cmd.Env = slices.Concat(r.env, []string{"AFOOT_ADDR=" + place.Host})
		var stderr safeBuffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "%s\n%s", out, &stderr)
		for i, text := range strings.Split(string(out), mark) {
			require.Regexp(t, says[title][i], text, "%s\nafter\n%s\n%s", blocks[i], out, &stderr)
		}
		require.NotContains(t, string(out), `"code":"`, "no call was refused")
		for line := range strings.Lines(stderr.String()) {
			require.Contains(t, line, "timed out", "curl complains of the end of the stream's time and of nothing else")
		}
	}
}

// shellBlocks gives the shell lines of a section that begins with a title.
func shellBlocks(t *testing.T, page, title string) []string {
	t.Helper()
	_, section, found := strings.Cut(page, fmt.Sprintf("\n## %s\n", title))
	require.True(t, found, "no section %q", title)
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}
