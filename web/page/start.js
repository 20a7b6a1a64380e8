// The form that starts a command.

import { busy, byId, setAttr, setText } from "./dom.js";

/** A fresh key that makes a repeated start the same start. */
function freshKey() {
  const raw = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class StartForm {
  #api;
  #onStarted;
  #key = null;
  #asked = "";

  constructor({ api, onStarted }) {
    this.#api = api;
    this.#onStarted = onStarted;
    byId("start").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    const command = byId("command");
    command.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        byId("start").requestSubmit();
      }
    });
    command.addEventListener("input", () => this.#grow());
  }

  /** Says whether this sign-in may start anything. */
  allow(may) {
    byId("start-fields").disabled = !may;
    byId("start-readonly").hidden = may;
  }

  async #submit() {
    const command = byId("command").value;
    if (command.trim() === "") {
      this.#problem("Type a command first.");
      byId("command").focus();
      return;
    }
    const body = { kind: "bash", command };
    if (byId("workdir").value) body.workdir = byId("workdir").value;
    if (byId("label").value) body.label = byId("label").value;
    // A start whose answer was lost is asked for again under the same key, and so runs once.
    const asked = JSON.stringify(body);
    if (this.#key === null || this.#asked !== asked) this.#key = freshKey();
    this.#asked = asked;
    this.#problem("");
    const done = busy(byId("start-button"), "Starting…");
    try {
      const snapshot = await this.#api.json("/tasks", { method: "POST", body, headers: { "Idempotency-Key": this.#key } });
      this.#key = null;
      byId("command").value = "";
      byId("label").value = "";
      this.#grow();
      this.#onStarted(snapshot);
    } catch (problem) {
      if (problem.status !== 0) this.#key = null;
      this.#problem(problem.message);
    } finally {
      done();
    }
  }

  #problem(words) {
    setText(byId("start-problem"), words);
    setAttr(byId("command"), "aria-invalid", words ? "true" : null);
  }

  #grow() {
    const command = byId("command");
    command.rows = Math.min(12, Math.max(2, command.value.split("\n").length));
  }
}
