package e2e

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// signInLink gives what `afoot open` prints.
func (d *daemon) signInLink(session string) string {
	d.t.Helper()
	out, errs, code := d.command("open", "--session", session)
	require.Zero(d.t, code, "%s", errs)
	link := strings.TrimSpace(out)
	parsed, err := url.Parse(link)
	require.NoError(d.t, err)
	require.NotEmpty(d.t, parsed.Fragment, "the code travels in the fragment")
	require.Empty(d.t, parsed.RawQuery)
	return link
}

// A person signs in by the link, starts a command, follows it, kills it, and sees
// its end; what others start and end shows up by itself.
func TestPage(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	d := serve(t)
	base, c := "http://"+d.addr, d.as("page")
	link := d.signInLink("page")

	b.do(chromedp.Navigate(link))
	b.shows("#list-empty", "No tasks yet")
	b.shows("#connection", "Live")
	b.shows("#who", "page")
	require.Equal(t, base+"/", ask[string](b, `location.href`), "the code has left the address bar")
	require.Empty(t, ask[string](b, `document.cookie + Object.keys(localStorage)`), "a token is kept in the tab alone")

	// What another client does shows up by itself.
	other := newGate(t)
	others := c.start(t, other.wait()+"exit 3", fields{"label": "somebody else's"})
	b.shows("#tasks", others.ID)
	b.shows("#tasks", "somebody else's")
	other.open(t)
	b.shows("#tasks", "completed · exit code: 3")

	// A command is started by keyboard alone, and its output followed as it comes.
	g := newGate(t)
	text := "printf '<b>first</b> é\\n'; " + g.wait() + "printf 'sec'; sleep 0.2; echo ond; sleep 7301; echo never"
	b.do(chromedp.Focus(chromedp.CSS("#command")), command(input.InsertText, input.InsertTextParams{Text: text}))
	b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.shows("#detail-status", "running")
	id := ask[string](b, `document.querySelector("#detail-id").textContent`)
	require.Regexp(t, `^bash-\d+$`, id)
	b.shows("#output pre", "<b>first</b> é\n")
	require.Zero(t, ask[int](b, `document.querySelectorAll("#output b").length`), "output is text, never markup")
	g.open(t)
	b.shows("#output pre", "<b>first</b> é\nsecond\n")
	b.shows("#output-state", "Following")
	b.shows(`.task[aria-current]`, id)
	b.picture("page-running")

	// Killing asks first, and a no changes nothing.
	b.click("#kill")
	b.shows("#kill-dialog", "Kill "+id+"?")
	require.True(t, ask[bool](b, `document.querySelector("#kill-dialog").matches(":modal")`))
	b.picture("page-kill")
	b.click("#kill-no")
	eventually(t, 10*time.Second, "dialog is closed", func() bool {
		return !ask[bool](b, `document.querySelector("#kill-dialog").open`)
	})
	require.Equal(t, "running", c.get(t, id).Status)
	b.click("#kill")
	b.click("#kill-yes")
	b.shows("#detail-status", "killed, signal: SIGTERM")
	b.shows("#output-state", "End of output")
	b.shows(".task[aria-current]", "killed")
	require.Equal(t, "killed", c.get(t, id).Status)
	require.NotContains(t, ask[string](b, `document.querySelector("#output").innerText`), "never")

	// The tab stays signed in and at its task over a reload.
	b.do(chromedp.Reload())
	b.shows("#detail-status", "killed")
	b.shows("#output pre", "second")
	b.shows("#connection", "Live")
	b.shows("#tasks", others.ID)
	b.picture("page-light")
	b.scheme("dark")
	b.picture("page-dark")
	b.do(chromedp.EmulateViewport(390, 800))
	b.picture("page-narrow-task")
	b.click(".back")
	b.do(chromedp.WaitVisible(chromedp.CSS("#command")))
	b.picture("page-narrow-list")
	b.clean(base)

	// A link works once; another tab is somebody else.
	again := newTab(b.ctx, t)
	again.do(chromedp.Navigate(link))
	again.shows("main[data-for=outside]", "afoot open")
	eventually(t, 10*time.Second, "the page says why", func() bool {
		return ask[string](again, `document.querySelector("#signin-problem").innerText`) != ""
	})
	require.Equal(t, base+"/", ask[string](again, `location.href`))
	again.picture("page-signin")
}

// A pasted token signs in as well and is renewed before its end; a daemon that goes
// away and comes back is noticed and met again without a hand.
func TestPageStaysConnected(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	d := serve(t)
	b.do(chromedp.Navigate("http://" + d.addr + "/"))
	b.shows("main[data-for=outside]", "afoot open")
	b.click("main[data-for=outside] summary")
	// Near its end, but made to live for long: so does what it is renewed to. It has
	// to last until a slow browser has signed in; most of its time is waited away.
	now := time.Now()
	rest := min(patient(12*time.Second), 40*time.Second)
	short := d.mint(jwt.MapClaims{"sid": "stay", "iat": now.Add(-time.Hour).Unix(), "exp": now.Add(rest).Unix()})
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), short+kb.Enter))
	b.shows("#connection", "Live")
	eventually(t, 60*time.Second, "the token is renewed", func() bool {
		kept := ask[string](b, `JSON.parse(sessionStorage.getItem("afoot.token"))?.token ?? ""`)
		return kept != "" && kept != short
	})
	require.Empty(t, ask[string](b, `document.querySelector("#token").value`))
	// A link signs in over a live session as well.
	b.do(chromedp.Navigate(d.signInLink("stay")))
	c := d.as("stay")
	first := c.start(t, "true", fields{"label": "before"})
	b.shows("#tasks", first.ID)
	b.shows("#tasks", "completed")
	b.clean("http://" + d.addr)

	d.stop()
	b.shows("#connection", "Offline, trying again")
	b.picture("page-offline")
	d.launch()
	d.ready()
	// A hand is quicker than the page's own attempts, if it comes before them.
	ask[bool](b, `(button => { if (button.checkVisibility()) button.click(); return true })(document.querySelector("#retry"))`)
	b.shows("#connection", "Live")
	second := d.as("stay").start(t, "true", fields{"label": "after"})
	b.shows("#tasks", "after")
	b.shows("#tasks", second.ID)

	b.click("#signout")
	b.shows("main[data-for=outside]", "You have signed out")
	require.Equal(t, 0, ask[int](b, `sessionStorage.length`))
	require.NotContains(t, ask[string](b, `document.body.textContent`), second.ID, "nothing stays behind")
}
