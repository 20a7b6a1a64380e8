// The session's tasks as the page knows them, kept fresh by listing again.

import { newestFirst, terminal } from "./format.js";

const pageSize = 1000;

export class Tasks {
  #api;
  #onChange;
  #running = null;
  #again = false;
  #epoch = 0;
  #byId = new Map();

  /** onChange({ended: [snapshot…]}) is called after each change, with the tasks seen to end. */
  constructor({ api, onChange }) {
    this.#api = api;
    this.#onChange = onChange;
    this.loaded = false;
    this.problem = "";
  }

  get(id) {
    return this.#byId.get(id);
  }

  /** All tasks, newest first. */
  all() {
    return [...this.#byId.values()].sort(newestFirst);
  }

  get live() {
    return [...this.#byId.values()].some((task) => !terminal(task.status));
  }

  /** Forgets everything, also what is still on its way. */
  clear() {
    this.#epoch += 1;
    this.#byId.clear();
    this.loaded = false;
    this.problem = "";
  }

  /** Lists again. Calls during a listing, and in a pause behind it that grows with its length, make one more and not many. */
  refresh() {
    if (this.#running) {
      this.#again = true;
      return this.#running;
    }
    const began = performance.now();
    const rested = () => {
      this.#running = null;
      if (this.#again) {
        this.#again = false;
        this.refresh();
      }
    };
    this.#running = this.#listAll().finally(() => setTimeout(rested, 3 * (performance.now() - began)));
    return this.#running;
  }

  /** Takes one fresh snapshot. An older one never overwrites an end. */
  put(snapshot) {
    const known = this.#byId.get(snapshot.id);
    if (known && terminal(known.status) && !terminal(snapshot.status)) return;
    const ended = known && !terminal(known.status) && terminal(snapshot.status) ? [snapshot] : [];
    this.#byId.set(snapshot.id, snapshot);
    this.#onChange({ ended });
  }

  /** Updates the tasks that are still running: output grows without an event. */
  async refreshLive() {
    if (this.#running) return;
    const epoch = this.#epoch;
    try {
      const answer = await this.#api.json(`/tasks?status=running&limit=${pageSize}`);
      if (epoch !== this.#epoch) return;
      for (const task of answer.tasks) this.put(task);
    } catch {
      // The stream says when the daemon is away; the next round tries again.
    }
  }

  async #listAll() {
    const epoch = this.#epoch;
    const fresh = new Map();
    try {
      let after = "";
      do {
        const query = after ? `&after=${encodeURIComponent(after)}` : "";
        const answer = await this.#api.json(`/tasks?limit=${pageSize}${query}`);
        if (epoch !== this.#epoch) return;
        for (const task of answer.tasks) fresh.set(task.id, task);
        after = answer.next ?? "";
      } while (after);
    } catch (problem) {
      if (epoch !== this.#epoch) return;
      this.problem = problem.message;
      this.#onChange({ ended: [] });
      return;
    }
    const ended = [];
    for (const [id, task] of fresh) {
      const known = this.#byId.get(id);
      if (known && !terminal(known.status) && terminal(task.status)) ended.push(task);
      if (known && terminal(known.status) && !terminal(task.status)) fresh.set(id, known);
    }
    this.#byId = fresh;
    this.loaded = true;
    this.problem = "";
    this.#onChange({ ended });
  }
}
