// One task: its facts, its output as it comes, and its end on request.

import { age, bytes, moment, terminal, tone } from "./format.js";
import { busy, byId, h, setAttr, setText } from "./dom.js";
import { follow } from "./follow.js";

export class Detail {
  #api;
  #tasks;
  #session;
  #say;
  #id; // undefined: closed, null: none chosen
  #stop = null;

  constructor({ api, tasks, session, say }) {
    this.#api = api;
    this.#tasks = tasks;
    this.#session = session;
    this.#say = say;
    byId("kill").addEventListener("click", () => this.#askKill());
    byId("kill-no").addEventListener("click", () => byId("kill-dialog").close());
    byId("kill-yes").addEventListener("click", () => this.#kill());
    byId("save").addEventListener("click", () => this.#save());
    byId("wrap").addEventListener("change", (event) => setAttr(byId("output"), "data-wrap", event.target.checked));
    byId("output").addEventListener("scroll", () => this.#scrolled(), { passive: true });
    byId("to-end").addEventListener("click", () => {
      byId("output").scrollTop = byId("output").scrollHeight;
    });
  }

  get id() {
    return this.#id;
  }

  /** Shows one task and follows it, or none. */
  async show(id) {
    if (id === this.#id) return;
    this.close();
    this.#id = id;
    setAttr(document.body, "data-detail", id !== null);
    byId("nothing").hidden = id !== null;
    byId("detail").hidden = id === null;
    if (id === null) return;
    this.#stop = new AbortController();
    await this.#load(id, this.#stop.signal);
  }

  /** Ends the following. */
  close() {
    this.#stop?.abort();
    this.#stop = null;
    this.#id = undefined;
    byId("output").replaceChildren();
    for (const id of ["detail-id", "detail-label", "request-command", "fact-workdir", "kill-id", "kill-label"]) setText(byId(id), "");
    if (byId("kill-dialog").open) byId("kill-dialog").close();
  }

  async #load(id, signal) {
    setText(byId("detail-id"), id);
    byId("request").hidden = true;
    this.#state({ words: "Loading…", busy: true });
    this.render();
    let task;
    try {
      task = await this.#api.json(`/tasks/${encodeURIComponent(id)}`, { signal });
    } catch (problem) {
      if (!signal.aborted) this.#state({ words: problem.message, failed: true });
      return;
    }
    if (signal.aborted) return;
    this.#request(task);
    this.#tasks.put(task);
    this.render();
    const box = byId("output");
    const onRead = (snapshot) => this.#tasks.put(snapshot);
    await follow({ api: this.#api, task, box, signal, onRead, onState: (state) => this.#state(state) });
  }

  /** Brings the facts in line with the task. */
  render() {
    if (this.#id == null) return;
    const task = this.#tasks.get(this.#id);
    const live = task !== undefined && !terminal(task.status);
    byId("facts").hidden = task === undefined;
    byId("detail-status").hidden = task === undefined;
    byId("save").disabled = task === undefined;
    const kill = byId("kill");
    const held = document.activeElement === kill;
    kill.hidden = task === undefined || terminal(task.status);
    kill.disabled = !live || task.status === "stopping" || !this.#session.may("tasks:write");
    setText(kill, task?.status === "stopping" ? "Stopping…" : "Kill");
    if (held && (kill.hidden || kill.disabled)) byId("detail-id").focus();
    setText(byId("detail-label"), task?.label ?? "");
    if (!task) return;
    setAttr(byId("detail-status"), "data-tone", tone(task));
    setText(byId("detail-status-text"), task.detail ? `${task.status}, ${task.detail}` : task.status);
    setText(byId("fact-started"), moment(task.startedAt));
    setText(byId("fact-output"), bytes(task.outputBytes) + (task.droppedBytes ? ` (${bytes(task.droppedBytes)} dropped)` : ""));
    setText(byId("fact-agent"), task.agent ?? "nobody");
    this.tick();
  }

  /** Moves the clock on. */
  tick() {
    const task = this.#tasks.get(this.#id);
    if (task) setText(byId("fact-age"), age(task, this.#api.now()));
  }

  // The request as started; the command only where the label does not already say all of it.
  #request({ request, label }) {
    const command = typeof request?.command === "string" ? request.command : "";
    byId("request").hidden = command.trim() === label.trim();
    setText(byId("request-command"), command);
    setText(byId("fact-workdir"), request?.workdir ?? "");
    byId("fact-workdir").parentElement.hidden = !request?.workdir;
  }

  #state({ words, busy: working = false, failed = false }) {
    setText(byId("output-state-text"), words);
    setAttr(byId("output-state"), "data-busy", working);
    setAttr(byId("output-state"), "data-failed", failed);
  }

  #scrolled() {
    const box = byId("output");
    byId("to-end").hidden = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
  }

  #askKill() {
    const task = this.#tasks.get(this.#id);
    if (!task) return;
    setText(byId("kill-id"), task.id);
    setText(byId("kill-label"), task.label);
    setText(byId("kill-problem"), "");
    byId("kill-dialog").showModal();
    byId("kill-no").focus();
  }

  async #kill() {
    const id = this.#id;
    const done = busy(byId("kill-yes"), "Killing…");
    try {
      const answer = await this.#api.json(`/tasks/${encodeURIComponent(id)}?reason=${encodeURIComponent("asked for on the page")}`, { method: "DELETE" });
      byId("kill-dialog").close();
      if (answer.outcome === "already-finished") this.#say(`${id} had already finished.`);
      this.#tasks.put(answer.snapshot);
    } catch (problem) {
      setText(byId("kill-problem"), problem.message);
    } finally {
      done();
    }
  }

  async #save() {
    const id = this.#id;
    const done = busy(byId("save"), "Saving…");
    try {
      const response = await this.#api.call(`/tasks/${encodeURIComponent(id)}/log`);
      const address = URL.createObjectURL(await response.blob());
      h("a", { href: address, download: `${id}.log` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (problem) {
      this.#say(`The log was not saved: ${problem.message}`, { failed: true });
    } finally {
      done();
    }
  }
}
