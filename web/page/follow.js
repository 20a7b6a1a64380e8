// One task's output, followed into a pane whose size in the document is bounded.

import { backoff } from "./sse.js";
import { bytes } from "./format.js";
import { OutputCleaner } from "./text.js";
import { h } from "./dom.js";

const pageBytes = 256 * 1024;
const keptChars = 1024 * 1024;
const nodeChars = 64 * 1024;
const waitMs = 25_000;
// A pause between answers: a chatty task costs ten calls per second, not hundreds.
const breath = 100;

/** The pane: text nodes in a <pre>, oldest dropped first. It keeps to its end until its reader scrolls away. */
class Pane {
  #box;
  #text;
  #note;
  #chars = 0;
  #atEnd = true;

  constructor(box, signal) {
    this.#box = box;
    this.#note = h("p", { className: "output-note", hidden: true });
    this.#text = h("pre", { className: "output-text" });
    box.replaceChildren(this.#note, this.#text);
    box.addEventListener("scroll", () => {
      this.#atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 32;
    }, { passive: true, signal });
    const resized = new ResizeObserver(() => this.#toEnd());
    resized.observe(box);
    signal.addEventListener("abort", () => resized.disconnect());
  }

  /** Says above the text why it does not begin at the beginning. */
  note(words) {
    this.#note.textContent = words;
    this.#note.hidden = words === "";
  }

  append(text) {
    if (text === "") return;
    const last = this.#text.lastChild;
    if (last && last.length + text.length <= nodeChars) last.appendData(text);
    else this.#text.append(document.createTextNode(text));
    this.#chars += text.length;
    while (this.#chars > keptChars && this.#text.childNodes.length > 1) {
      this.#chars -= this.#text.firstChild.length;
      this.#text.firstChild.remove();
      this.note("Only the newest output is shown here. Save the log for all of it.");
    }
    this.#toEnd();
  }

  #toEnd() {
    if (this.#atEnd) this.#box.scrollTop = this.#box.scrollHeight;
  }

  get empty() {
    return this.#chars === 0;
  }
}

/**
 * Follows a task's output from near its end until it has ended or signal fires.
 * onRead(snapshot) hears each answer, onState({words, busy}) what is going on.
 */
export async function follow({ api, task, box, signal, onRead, onState }) {
  const pane = new Pane(box, signal);
  const cleaner = new OutputCleaner();
  let offset = Math.max(task.droppedBytes, task.outputBytes - pageBytes);
  if (offset > 0) pane.note(`The first ${bytes(offset)} are not shown. Save the log for all that is kept.`);
  onState({ words: "Loading output…", busy: true });
  for (let failures = 0; !signal.aborted; ) {
    let read;
    try {
      const query = `offset=${offset}&limit_bytes=${pageBytes}&wait=true&timeout_ms=${failures === 0 ? waitMs : 1000}`;
      read = await api.json(`/tasks/${encodeURIComponent(task.id)}/output?${query}`, { signal });
      failures = 0;
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 401) return;
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) {
        onState({ words: problem.message, failed: true });
        return;
      }
      const pause = Math.max(problem.retryAfter ?? 0, backoff(failures));
      failures += 1;
      onState({ words: `${problem.message} Trying again…`, busy: true });
      await pauseFor(pause, signal);
      continue;
    }
    if (signal.aborted) return;
    if (read.offset > offset) pane.append(`\n[${bytes(read.offset - offset)} of output were dropped here]\n`);
    pane.append(cleaner.push(read.text));
    const moved = read.nextOffset > offset;
    offset = read.nextOffset;
    onRead(read.snapshot);
    if (read.eof) {
      pane.append(cleaner.rest());
      onState({ words: pane.empty ? "It ended without output." : "End of output." });
      return;
    }
    onState({ words: pane.empty ? "No output yet. Waiting…" : "Following…", busy: true });
    // Half a character can be all that is new: then the next answer comes at once, too.
    await pauseFor(moved ? breath : 5 * breath, signal);
  }
}

function pauseFor(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
