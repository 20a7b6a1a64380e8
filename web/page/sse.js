// Server-Sent Events, parsed by hand: EventSource cannot send a token. Pure.

/**
 * Turns the bytes of a text/event-stream, cut anywhere, into events
 * {event, data, id}. `id` is the last id seen, as a reconnect must send it.
 */
export class EventParser {
  #decoder = new TextDecoder("utf-8"); // swallows a byte order mark, keeps cut characters
  #line = "";
  #skipLF = false;
  #data = [];
  #event = "";
  #pendingId = "";
  #lastId = "";

  /** The id to resume after: that of the last complete event, or of an id-only block. */
  get lastId() {
    return this.#lastId;
  }

  /** Takes the next bytes and gives the events that they complete. */
  push(chunk) {
    const events = [];
    const text = this.#decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let i = 0; i < text.length; i++) {
      const char = text[i];
      if (char !== "\n" && char !== "\r") {
        this.#skipLF = false;
        continue;
      }
      if (char === "\n" && this.#skipLF) {
        this.#skipLF = false;
        start = i + 1;
        continue;
      }
      this.#skipLF = char === "\r";
      this.#take(this.#line + text.slice(start, i), events);
      this.#line = "";
      start = i + 1;
    }
    this.#line += text.slice(start);
    return events;
  }

  #take(line, events) {
    if (line === "") {
      this.#dispatch(events);
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment: the heartbeat
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#pendingId = value;
  }

  // An id counts only once its block is complete: a cut between the id and the
  // blank line must not skip the event.
  #dispatch(events) {
    this.#lastId = this.#pendingId;
    if (this.#data.length > 0) {
      events.push({ event: this.#event || "message", data: this.#data.join("\n"), id: this.#lastId });
    }
    this.#data = [];
    this.#event = "";
  }
}

/** Milliseconds to wait before try number `attempt` (from 0): doubling to 15 s, spread so that pages do not come back all at once. */
export function backoff(attempt, random = Math.random) {
  const full = Math.min(15_000, 500 * 2 ** Math.min(attempt, 10));
  return Math.round(full / 2 + (random() * full) / 2);
}
