// Who is signed in: a token in this tab's own storage, renewed while it lives.

const slot = "afoot.token";
const longestTimer = 2 ** 31 - 1;

/** The claims of a token, unverified: for display and timing only. Null when it is no JWT. */
export function claims(token) {
  try {
    const part = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const raw = Uint8Array.from(atob(part), (char) => char.charCodeAt(0));
    const value = JSON.parse(new TextDecoder().decode(raw));
    return value && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** When to renew a token, in milliseconds from now: a quarter of its rest before its end, at most two minutes. */
export function renewIn(expiresAt, now) {
  const rest = expiresAt - now;
  return Math.max(0, rest - Math.min(rest / 4, 120_000));
}

/** The sign-in code of a fragment, or null. */
export function codeOf(hash) {
  return new URLSearchParams(hash.replace(/^#/, "")).get("code");
}

export class Session {
  #timer = 0;
  #onEnd;

  /** onEnd(words) is called once when a session is over. */
  constructor({ onEnd }) {
    this.#onEnd = onEnd;
    this.token = null;
    this.expiresAt = 0;
  }

  /** Takes up what the tab still holds. Reports whether that is a live token. */
  restore() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(slot) ?? "null");
      if (kept?.token && kept.expiresAt > Date.now()) {
        this.adopt(kept.token, kept.expiresAt);
        return true;
      }
    } catch {
      // What is not ours to read is not there.
    }
    return false;
  }

  /** Begins a session, or goes on with a fresh token. */
  adopt(token, expiresAt) {
    this.token = token;
    this.expiresAt = expiresAt;
    this.claims = claims(token) ?? {};
    sessionStorage.setItem(slot, JSON.stringify({ token, expiresAt }));
    this.#plan(renewIn(expiresAt, Date.now()));
  }

  /** Whether the token grants a scope. */
  may(scope) {
    return String(this.claims?.scope ?? "").split(" ").includes(scope);
  }

  /** Ends the session in this tab. The token itself lives on until its time. */
  end(words = "") {
    clearTimeout(this.#timer);
    sessionStorage.removeItem(slot);
    const had = this.token !== null;
    this.token = null;
    if (had) this.#onEnd(words);
  }

  /** Signs in by a single-use code. Throws an Error whose message is for people. */
  async exchange(code) {
    const answer = await post("/auth/exchange", { body: JSON.stringify({ code }) });
    this.adopt(answer.token, answer.expiresAt);
  }

  #plan(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#renew(), Math.min(ms, longestTimer));
  }

  async #renew() {
    if (this.expiresAt <= Date.now()) {
      this.end("Your sign-in has run out.");
      return;
    }
    const asked = this.token;
    try {
      const answer = await post("/auth/renew", { token: asked });
      if (this.token !== asked) return;
      if (answer.expiresAt <= this.expiresAt) {
        // Some tokens only live out what is left of them: asking again would not help.
        this.#plan(this.expiresAt - Date.now());
        return;
      }
      this.adopt(answer.token, answer.expiresAt);
    } catch {
      // Away or refused: the token in hand is good until its end, so ask again until then.
      if (this.token === asked) this.#plan(Math.min(5_000, Math.max(500, this.expiresAt - Date.now())));
    }
  }
}

async function post(path, { body, token }) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { method: "POST", headers, body, cache: "no-store" });
  } catch {
    throw new Error("Afoot cannot be reached.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail || answer.title || `The answer was ${response.status}.`);
  return answer;
}
