// Puts the parts of the page together: sign-in, stream, list, detail.

import { API } from "./api.js";
import { Detail } from "./detail.js";
import { Live } from "./live.js";
import { Session, claims, codeOf } from "./session.js";
import { StartForm } from "./start.js";
import { TaskList } from "./list.js";
import { Tasks } from "./tasks.js";
import { busy, byId, h, setAttr, setText } from "./dom.js";

const session = new Session({ onEnd: signedOut });
const api = new API(session);
const tasks = new Tasks({ api, onChange: changed });
const list = new TaskList({ tasks, api });
const detail = new Detail({ api, tasks, session, say });
const form = new StartForm({ api, onStarted: started });
const live = new Live({ api, onEvent: heard, onState: connection });

let state = { name: "paused" };
let hiddenSince = 0;

// Signing in and out.

async function enter() {
  const code = codeOf(location.hash);
  if (code === null) {
    if (session.token === null && session.restore()) signedIn();
    else if (session.token === null) signedOut("");
    else choose();
    return;
  }
  // The code leaves the address bar before anything else happens with it.
  history.replaceState(null, "", location.pathname + location.search);
  screen("entering");
  try {
    await session.exchange(code);
    signedIn();
  } catch (problem) {
    if (session.token !== null || session.restore()) {
      signedIn();
      say(`The link did not sign you in: ${problem.message}`, { failed: true });
    } else {
      signedOut(problem.message);
    }
  }
}

function signedIn() {
  live.stop({ forget: true });
  detail.close();
  tasks.clear();
  const who = session.claims;
  setText(byId("who"), who.sid ? `session ${who.sid}` : "no session");
  form.allow(session.may("tasks:write"));
  screen("working");
  list.render();
  tasks.refresh();
  live.start();
  choose();
}

function signedOut(words) {
  live.stop({ forget: true });
  detail.show(null);
  tasks.clear();
  list.render();
  byId("toasts").replaceChildren();
  setText(byId("who"), "");
  setText(byId("signin-problem"), words);
  screen("outside");
}

function screen(name) {
  setAttr(document.body, "data-screen", name);
}

byId("signout").addEventListener("click", () => session.end("You have signed out in this tab."));

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  const who = claims(token);
  if (!who || typeof who.exp !== "number") {
    setText(byId("signin-problem"), "That is not a token that Afoot knows.");
    return;
  }
  if (who.exp * 1000 <= Date.now()) {
    setText(byId("signin-problem"), "That token has run out.");
    return;
  }
  byId("token").value = "";
  setText(byId("signin-problem"), "");
  session.adopt(token, who.exp * 1000);
  signedIn();
});

// What the stream says.

function heard({ event }) {
  if (event === "tasks.changed" || event === "task.done" || event === "gap") tasks.refresh();
}

function connection(next) {
  const reopened = next.name === "live" && state.name !== "live";
  state = next;
  setAttr(byId("connection"), "data-state", next.name);
  connectionWords();
  // Whatever happened while the stream was away is in the list, not on the stream.
  if (reopened && tasks.loaded) tasks.refresh();
}

function connectionWords() {
  const rest = Math.max(1, Math.ceil(((state.until ?? 0) - Date.now()) / 1000));
  const words = { connecting: "Connecting…", live: "Live", paused: "Paused", waiting: `Offline, trying again in ${rest} s` };
  setText(byId("connection-text"), words[state.name]);
  setAttr(byId("connection"), "title", state.words ?? null);
  byId("retry").hidden = state.name !== "waiting";
}

byId("retry").addEventListener("click", () => live.retryNow());
addEventListener("online", () => live.retryNow());

// What the tasks say.

function changed({ ended }) {
  list.render();
  detail.render();
  for (const task of ended.filter(({ id }) => id !== detail.id)) say(`${task.id} ${task.status}${task.detail ? `, ${task.detail}` : ""}`);
}

function started(snapshot) {
  tasks.put(snapshot);
  location.hash = `#/${encodeURIComponent(snapshot.id)}`;
}

byId("list-retry").addEventListener("click", async () => {
  const done = busy(byId("list-retry"), "Loading…");
  await tasks.refresh();
  done();
});

/** Says something once, for eyes and for screen readers. */
function say(words, { failed = false } = {}) {
  const line = h("p", { className: failed ? "toast failed" : "toast" }, words);
  const box = byId("toasts");
  box.append(line);
  while (box.childElementCount > 3) box.firstElementChild.remove();
  setTimeout(() => line.remove(), failed ? 12_000 : 6_000);
}

// The address bar says which task is shown, so that Back and reload work.

function choose() {
  const match = location.hash.match(/^#\/(.+)$/);
  let id = null;
  try {
    id = match ? decodeURIComponent(match[1]) : null;
  } catch {
    // An address that nobody made here shows no task.
  }
  list.select(id);
  detail.show(id);
}

addEventListener("hashchange", enter);

// Clocks, and output sizes of what is running. A hidden tab gives its
// connections back after a while: a browser has only six per server.

setInterval(() => {
  if (session.token === null || document.hidden) return;
  list.tick();
  detail.tick();
  if (state.name === "waiting") connectionWords();
}, 1_000);

setInterval(() => {
  if (session.token === null || document.hidden || state.name !== "live") return;
  if (tasks.live) tasks.refreshLive();
}, 2_000);

setInterval(() => {
  if (session.token !== null && document.hidden && Date.now() - hiddenSince > 30_000) {
    live.stop();
    detail.close();
  }
}, 5_000);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    hiddenSince = Date.now();
    return;
  }
  if (session.token === null) return;
  tasks.refresh();
  live.start();
  live.retryNow();
  choose();
});

enter();
