// Facts as short words for people. Pure.

const steps = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** Bytes with a binary unit: "0 B", "1.5 KiB". */
export function bytes(count) {
  if (count < 1024) return `${count} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = -1;
  do {
    value /= 1024;
    unit += 1;
  } while (value >= 1023.5 && unit < units.length - 1);
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** A length of time in its two largest units: "420 ms", "3.2 s", "3 min 5 s", "2 h 10 min". */
export function duration(ms) {
  if (ms > 0 && ms < 950) return `${Math.round(ms)} ms`;
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${Number.isInteger(seconds) ? seconds : seconds.toFixed(1)} s`;
  let rest = Math.round(seconds);
  const first = steps.findIndex(([, size]) => rest >= size);
  const parts = [];
  for (const [unit, size] of steps.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.join(" ");
}

/** How long ago, in one unit: "just now", "40 s ago", "3 h ago". */
export function ago(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 5) return "just now";
  const [unit, size] = steps.find(([, step]) => seconds >= step);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** A moment in the reader's own way of writing. */
export const moment = (ms) => new Date(ms).toLocaleString();

/** One of the three ends. */
export const terminal = (status) => status === "completed" || status === "killed" || status === "failed";

/** How a task's life looks in the list: the tone of its mark. An end with an exit code other than 0 asks for attention. */
export function tone(task) {
  if (task.status === "completed" && task.result?.exitCode) return "attention";
  return task.status;
}

/** "running for 12 s", or "took 3 s". */
export function age(task, now) {
  if (terminal(task.status)) return `took ${duration((task.finishedAt ?? now) - task.startedAt)}`;
  return `for ${duration(Math.floor((now - task.startedAt) / 1000) * 1000)}`;
}

/** Orders tasks newest first. Ids count up per kind, times may be equal. */
export function newestFirst(a, b) {
  if (a.startedAt !== b.startedAt) return b.startedAt - a.startedAt;
  if (a.kind !== b.kind) return a.kind < b.kind ? -1 : 1;
  return Number(b.id.slice(b.kind.length + 1)) - Number(a.id.slice(a.kind.length + 1));
}
