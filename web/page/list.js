// The list of tasks: one link per task, newest first.

import { age, ago, bytes, moment, terminal, tone } from "./format.js";
import { byId, h, setAttr, setText } from "./dom.js";

const step = 200;

export class TaskList {
  #rows = new Map();
  #filter = "all";
  #shown = step;
  #tasks;
  #api;
  #selected = null;

  constructor({ tasks, api }) {
    this.#tasks = tasks;
    this.#api = api;
    for (const input of document.querySelectorAll("input[name=filter]")) {
      input.addEventListener("change", () => {
        this.#filter = input.value;
        this.#shown = step;
        this.render();
      });
    }
    byId("more").addEventListener("click", () => {
      this.#shown += step;
      this.render();
    });
  }

  select(id) {
    this.#selected = id;
    this.render();
  }

  /** Brings the document in line with the tasks, keeping rows that stay. */
  render() {
    const all = this.#tasks.all();
    const running = all.filter((task) => !terminal(task.status)).length;
    setText(byId("count-all"), String(all.length));
    setText(byId("count-running"), String(running));
    setText(byId("count-ended"), String(all.length - running));
    const wanted = all.filter((task) => this.#filter === "all" || terminal(task.status) === (this.#filter === "ended"));
    const visible = wanted.slice(0, this.#shown);
    this.#place(visible);
    byId("more").hidden = wanted.length <= visible.length;
    setText(byId("more"), `Show ${Math.min(step, wanted.length - visible.length)} older`);
    this.#message(all.length, wanted.length);
    document.title = running > 0 ? `(${running}) Afoot` : "Afoot";
  }

  /** Moves the clocks on. */
  tick() {
    for (const [id, row] of this.#rows) {
      const task = this.#tasks.get(id);
      if (task) this.#times(row, task);
    }
  }

  #place(visible) {
    const list = byId("tasks");
    const keep = new Set(visible.map((task) => task.id));
    for (const [id, row] of this.#rows) {
      if (keep.has(id)) continue;
      row.item.remove();
      this.#rows.delete(id);
    }
    let before = list.firstChild;
    for (const task of visible) {
      const row = this.#rows.get(task.id) ?? this.#build(task);
      this.#update(row, task);
      if (row.item === before) before = before.nextSibling;
      else list.insertBefore(row.item, before);
    }
  }

  #build(task) {
    const part = (className) => h("span", { className });
    const row = { id: part("task-id"), status: part("task-status"), label: part("task-label"), agent: part("task-agent"), age: part("task-age"), size: part("task-size") };
    row.mark = h("span", { className: "mark", "aria-hidden": "true" });
    row.link = h("a", { className: "task", href: `#/${encodeURIComponent(task.id)}` },
      row.mark, row.id, row.status, row.label, h("span", { className: "task-facts" }, row.agent, row.age, row.size));
    row.item = h("li", {}, row.link);
    this.#rows.set(task.id, row);
    return row;
  }

  #update(row, task) {
    setAttr(row.link, "data-tone", tone(task));
    setAttr(row.link, "data-status", task.status);
    setAttr(row.link, "aria-current", task.id === this.#selected ? "true" : null);
    setText(row.id, task.id);
    setText(row.status, task.detail ? `${task.status} · ${task.detail}` : task.status);
    setText(row.label, task.label);
    setText(row.agent, task.agent && task.agent !== "default" ? task.agent : "");
    setText(row.size, bytes(task.outputBytes));
    this.#times(row, task);
  }

  #times(row, task) {
    const now = this.#api.now();
    const ended = terminal(task.status) && task.finishedAt ? ` · ${ago(now - task.finishedAt)}` : "";
    setText(row.age, age(task, now) + ended);
    setAttr(row.age, "title", `started ${moment(task.startedAt)}`);
  }

  #message(total, matching) {
    const { loaded, problem } = this.#tasks;
    setAttr(byId("list-loading"), "hidden", loaded || problem ? "" : null);
    setAttr(byId("list-problem"), "hidden", problem ? null : "");
    setText(byId("list-problem-text"), problem);
    setAttr(byId("list-empty"), "hidden", loaded && total === 0 ? null : "");
    setAttr(byId("list-none"), "hidden", loaded && total > 0 && matching === 0 ? null : "");
    setText(byId("list-none"), this.#filter === "running" ? "Nothing is running." : "Nothing has ended yet.");
  }
}
