// The session's event stream, kept open for as long as the page wants it.

import { EventParser, backoff } from "./sse.js";

// The daemon sends a comment every few seconds. A stream that is silent for so long is dead.
const silence = 60_000;
// A stream that lived for so long was a success: trying again starts from the shortest pause.
const settled = 5_000;

/**
 * Connects, reads, and reconnects with backoff, resuming after the last event.
 * onEvent({event, data, id}) gets every event but "bye"; onState gets
 * {name: "connecting" | "live" | "waiting" | "paused", until?, words?}.
 */
export class Live {
  #api;
  #onEvent;
  #onState;
  #stop = null;
  #wake = null;
  #lastId = "";

  constructor({ api, onEvent, onState }) {
    this.#api = api;
    this.#onEvent = onEvent;
    this.#onState = onState;
  }

  /** Opens the stream; does nothing when it is open. */
  start() {
    if (this.#stop) return;
    this.#stop = new AbortController();
    this.#run(this.#stop.signal);
  }

  /** Closes the stream. It keeps its place, unless it is told to forget it. */
  stop({ forget = false } = {}) {
    this.#stop?.abort();
    this.#stop = null;
    if (forget) this.#lastId = "";
    this.#onState({ name: "paused" });
  }

  /** Ends a pause between two tries. */
  retryNow() {
    this.#wake?.();
  }

  async #run(signal) {
    let attempt = 0;
    while (!signal.aborted) {
      this.#onState({ name: "connecting" });
      const opened = Date.now();
      let pause = 0;
      let words = "";
      try {
        const reason = await this.#connect(signal);
        if (Date.now() - opened >= settled) attempt = 0;
        const soon = reason === "token_expired" || reason === "reload" || reason === "lagged";
        pause = soon && attempt === 0 ? 0 : backoff(attempt);
        words = reason === "shutdown" ? "Afoot is shutting down." : "The connection was lost.";
      } catch (problem) {
        if (signal.aborted || problem.status === 401) return;
        pause = Math.max(problem.retryAfter ?? 0, backoff(attempt));
        words = problem.message;
      }
      attempt += 1;
      if (signal.aborted) return;
      if (pause > 0) {
        this.#onState({ name: "waiting", until: Date.now() + pause, words });
        await this.#sleep(pause, signal);
      }
    }
  }

  // Reads one connection to its end and gives the reason of its "bye", if one came.
  async #connect(signal) {
    const cut = new AbortController();
    const drop = () => cut.abort();
    signal.addEventListener("abort", drop);
    let timer = setTimeout(drop, silence);
    let reason = "";
    try {
      const headers = { Accept: "text/event-stream" };
      if (this.#lastId) headers["Last-Event-ID"] = this.#lastId;
      const response = await this.#api.call("/events?observe=true", { headers, signal: cut.signal });
      this.#onState({ name: "live" });
      const parser = new EventParser();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(timer);
        timer = setTimeout(drop, silence);
        for (const event of parser.push(value)) {
          if (event.id) this.#lastId = event.id;
          if (event.event === "bye") reason = reasonOf(event.data);
          else this.#onEvent(event);
        }
      }
    } catch (error) {
      if (signal.aborted || error.status !== undefined) throw error;
      // Cut in the middle, by the network or by the silence timer: reconnect.
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", drop);
      cut.abort();
    }
    return reason;
  }

  #sleep(ms, signal) {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", done);
      this.#wake = done;
    });
  }
}

function reasonOf(data) {
  try {
    return String(JSON.parse(data).reason ?? "");
  } catch {
    return "";
  }
}
