import assert from "node:assert/strict";
import test from "node:test";

import { API } from "./page/api.js";
import { EventParser, backoff } from "./page/sse.js";
import { OutputCleaner } from "./page/text.js";
import { age, ago, bytes, duration, newestFirst, tone } from "./page/format.js";
import { claims, codeOf, renewIn } from "./page/session.js";

const encode = (text) => new TextEncoder().encode(text);

function parse(pieces) {
  const parser = new EventParser();
  return { events: pieces.flatMap((piece) => parser.push(piece)), lastId: parser.lastId };
}

const stream = [
  "\uFEFF: hello\n\n",
  'id: e-1\nevent: task.done\ndata: {"text":"fertig – 世界 🦶"}\n\n',
  "event: tasks.changed\r\ndata: {}\r\n\r\n",
  ": heartbeat\n\n",
  "data:one\rdata:  two\rretry: 9\rnonsense\r\r",
  "id: e-2\ndata\n\n",
  "id: bad\0id\ndata: x\n\n",
  "id: e-3\n\n",
  "id: e-4\ndata: cut off",
].join("");

const wanted = [
  { event: "task.done", data: '{"text":"fertig – 世界 🦶"}', id: "e-1" },
  { event: "tasks.changed", data: "{}", id: "e-1" },
  { event: "message", data: "one\n two", id: "e-1" },
  { event: "message", data: "", id: "e-2" },
  { event: "message", data: "x", id: "e-2" },
];

test("events come out the same wherever the stream is cut", () => {
  const raw = encode(stream);
  assert.deepEqual(parse([raw]).events, wanted);
  assert.deepEqual(parse(Array.from(raw, (byte) => Uint8Array.of(byte))).events, wanted, "byte by byte");
  for (let cut = 0; cut <= raw.length; cut++) {
    assert.deepEqual(parse([raw.subarray(0, cut), raw.subarray(cut)]), { events: wanted, lastId: "e-3" }, `cut at ${cut}`);
  }
});

test("an id counts once its block is complete", () => {
  const parser = new EventParser();
  parser.push(encode("id: e-1\ndata: a\n\nid: e-2\ndata: b\n"));
  assert.equal(parser.lastId, "e-1");
  parser.push(encode("\n"));
  assert.equal(parser.lastId, "e-2");
});

test("pauses between tries grow, spread and end at 15 s", () => {
  assert.equal(backoff(0, () => 1), 500);
  assert.equal(backoff(0, () => 0), 250);
  assert.equal(backoff(3, () => 1), 4000);
  assert.equal(backoff(1000, () => 1), 15_000);
});

test("output is shown as plain text wherever it is cut", () => {
  const raw = "a\x1b[1;31mred\x1b[0m\x1b]0;title\x07b\x1b]8;;x\x1b\\link\r\n50%\r100%\r\nend\x1b(B\x1b=!\r";
  const clean = "ared" + "blink\n50%\n100%\nend!\n";
  for (let a = 0; a <= raw.length; a++) {
    for (let b = a; b <= raw.length; b++) {
      const cleaner = new OutputCleaner();
      const out = cleaner.push(raw.slice(0, a)) + cleaner.push(raw.slice(a, b)) + cleaner.push(raw.slice(b)) + cleaner.rest();
      assert.equal(out, clean, `cut at ${a} and ${b}`);
    }
  }
});

test("an escape that never ends holds nothing back for ever", () => {
  const cleaner = new OutputCleaner();
  const text = "\x1b]" + "x".repeat(300);
  assert.ok(cleaner.push(text).includes("xxx"));
});

test("numbers for people", () => {
  assert.deepEqual([0, 1023, 1024, 1536, 10_240, 1_048_575, 67_108_864].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10 KiB", "1.0 MiB", "64 MiB"]);
  assert.deepEqual([-5, 0, 420, 9_990, 12_000, 185_000, 3_600_000, 7_800_000, 90_000_000].map(duration), ["0 s", "0 s", "420 ms", "10 s", "12 s", "3 min 5 s", "1 h", "2 h 10 min", "1 d 1 h"]);
  assert.deepEqual([0, 40_000, 61_000, 7_200_000].map(ago), ["just now", "40 s ago", "1 min ago", "2 h ago"]);
  assert.equal(age({ status: "running", startedAt: 1000 }, 4900), "for 3 s");
  assert.equal(age({ status: "killed", startedAt: 1000, finishedAt: 3500 }, 99_000), "took 2.5 s");
  assert.equal(tone({ status: "completed", result: { exitCode: 3 } }), "attention");
  assert.equal(tone({ status: "completed", result: { exitCode: 0 } }), "completed");
});

test("tasks are ordered newest first, by number where times are equal", () => {
  const task = (id, startedAt) => ({ id, kind: id.split("-")[0], startedAt });
  const sorted = [task("bash-9", 5), task("bash-10", 5), task("bash-1", 9)].sort(newestFirst).map(({ id }) => id);
  assert.deepEqual(sorted, ["bash-1", "bash-10", "bash-9"]);
});

test("sign-in code and claims", () => {
  assert.equal(codeOf("#code=a%2Bb_c"), "a+b_c");
  assert.equal(codeOf("#/bash-1"), null);
  const part = Buffer.from(JSON.stringify({ sid: "größe", exp: 9 })).toString("base64url");
  assert.deepEqual(claims(`x.${part}.y`), { sid: "größe", exp: 9 });
  for (const bad of ["", "x", "x.!.y", "x.bnVsbA.y"]) assert.equal(claims(bad), null, bad);
});

test("a token is renewed in time", () => {
  assert.equal(renewIn(100_000, 0), 75_000);
  assert.equal(renewIn(3_600_000, 0), 3_480_000);
  assert.equal(renewIn(5, 10), 0);
});

test("a call that outlived its token is made again with the renewed one", async (t) => {
  const session = { token: "old", ended: [], end(words) { this.ended.push(words); } };
  const asked = [];
  t.mock.method(globalThis, "fetch", async (path, { method, headers, body }) => {
    asked.push([method, path, headers.Authorization, headers["Idempotency-Key"], body]);
    const known = headers.Authorization === "Bearer new";
    session.token = "new"; // renewed while the call was on its way
    return new Response(known ? '{"id":"bash-1"}' : '{"detail":"The token expired."}', { status: known ? 200 : 401 });
  });
  const answer = await new API(session).json("/tasks", { method: "POST", body: { kind: "bash" }, headers: { "Idempotency-Key": "k" } });
  assert.deepEqual(answer, { id: "bash-1" });
  assert.deepEqual(asked, [
    ["POST", "/tasks", "Bearer old", "k", '{"kind":"bash"}'],
    ["POST", "/tasks", "Bearer new", "k", '{"kind":"bash"}'],
  ]);
  assert.deepEqual(session.ended, []);
});

test("a call whose token is refused ends the session", async (t) => {
  const session = { token: "only", ended: [], end(words) { this.ended.push(words); } };
  t.mock.method(globalThis, "fetch", async () => new Response("{}", { status: 401 }));
  await assert.rejects(new API(session).call("/tasks"), { status: 401 });
  assert.equal(session.ended.length, 1);
});
