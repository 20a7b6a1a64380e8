package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// tab is one tab of a real Chromium that watches what its page asks for and
// complains about.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	requests []string
	trouble  []string
}

// openBrowser starts Chromium with a fresh profile and ends it with the test. The
// test is skipped where there is none.
func openBrowser(t *testing.T) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("SKIPPED: THERE IS NO CHROMIUM HERE, SO THE WEB PAGE WAS NOT TESTED IN A BROWSER")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 800),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	b := newTab(ctx, t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
		defer cancel()
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("browser's end: %v", err)
		}
	})
	return b
}

// newTab opens a tab: the first one of a browser, or one more of the browser that
// parent holds.
func newTab(parent context.Context, tb testing.TB) *tab {
	tb.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	tb.Cleanup(cancel)
	b := &tab{t: tb, ctx: ctx}
	require.NoError(tb, chromedp.Listen(ctx, b.heard))
	for _, enable := range []chromedp.Action[chromedp.Void]{
		command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}), command(runtime.Enable, cdp.Empty{}),
	} {
		b.do(enable)
	}
	return b
}

// command makes an action of a protocol command whose answer nobody needs.
func command[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, cmd, params)
		return chromedp.Void{}, err
	}
}

func (b *tab) heard(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning || e.Entry.Source == log.EntrySourceSecurity {
			b.trouble = append(b.trouble, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		b.trouble = append(b.trouble, fmt.Sprintf("console.%s: %s", e.Type, e.Args[0].Value))
	case *runtime.EventExceptionThrown:
		b.trouble = append(b.trouble, "exception: "+e.ExceptionDetails.Text)
	}
}

// clean checks that the page complained about nothing (a breach of its content
// security policy is a complaint, too) and asked nobody but the daemon.
func (b *tab) clean(base string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.trouble, "complaints of the browser")
	require.NotEmpty(b.t, b.requests)
	for _, request := range b.requests {
		if !strings.HasPrefix(request, "data:") && !strings.HasPrefix(request, "blob:"+base+"/") {
			require.True(b.t, strings.HasPrefix(request, base+"/"), "outside request: %s", request)
		}
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// ask evaluates an expression in the page.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, "%s", expression)
	return v
}

// shows waits until the element's visible text holds words.
func (b *tab) shows(selector, words string) {
	b.t.Helper()
	seen := ""
	defer func() {
		if b.t.Failed() {
			b.t.Logf("%s shows %q; complaints: %q", selector, seen, b.trouble)
		}
	}()
	eventually(b.t, 20*time.Second, selector+" shows "+words, func() bool {
		seen = ask[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
		return strings.Contains(seen, words)
	})
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// picture keeps a screenshot for people to look at.
func (b *tab) picture(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.MkdirAll("artifacts", 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join("artifacts", name+".png"), png, 0o644))
}

func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	}))
}
