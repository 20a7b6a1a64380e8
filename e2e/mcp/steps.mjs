// What every client may expect of the server, whatever way it is reached.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const bound = 20_000; // milliseconds until a fact that must come is missed

// until polls a fact until it holds.
export async function until(what, fact) {
  const end = Date.now() + bound;
  for (;;) {
    const value = await fact();
    if (value) return value;
    assert(Date.now() < end, `not in time: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

// Steps is one walk over one connected client. `modern` says that the client speaks
// the protocol without sessions.
export class Steps {
  constructor(client, modern) {
    this.client = client;
    this.modern = modern;
    this.dir = mkdtempSync(join(tmpdir(), 'afoot-mcp-'));
    this.gates = 0;
    this.updates = [];
    client.setNotificationHandler('notifications/resources/updated', (n) => {
      this.updates.push(n.params.uri);
    });
  }

  close() {
    rmSync(this.dir, { recursive: true, force: true });
  }

  // gate gives a file and the shell text that waits until it is there.
  gate() {
    const path = join(this.dir, `gate${++this.gates}`);
    return { wait: `while [ ! -e '${path}' ]; do sleep 0.02; done; `, open: () => writeFileSync(path, '') };
  }

  async call(name, args, options) {
    const result = await this.client.callTool({ name, arguments: args }, options);
    assert.equal(result.content.length, 1, name);
    assert.equal(result.content[0].type, 'text', name);
    return { text: result.content[0].text, value: result.structuredContent, isError: result.isError === true };
  }

  async bash(command, more) {
    const answer = await this.call('bash', { command, description: 'a step', ...more });
    assert.equal(answer.isError, false, answer.text);
    return answer;
  }

  // start starts a background task and gives its id.
  async start(command) {
    const { text, value } = await this.bash(command, { run_in_background: true });
    assert.match(text, /^started background task bash-[1-9][0-9]*$/);
    assert.equal(value.kind, 'background');
    assert.equal(text, `started background task ${value.taskId}`);
    return value.taskId;
  }

  async tools() {
    const { tools } = await this.client.listTools();
    const named = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
    assert.deepEqual(Object.keys(named).sort(), ['bash', 'task_kill', 'task_list', 'task_output']);
    const hints = (name) => {
      const { readOnlyHint, destructiveHint, idempotentHint } = named[name].annotations;
      return { readOnlyHint, destructiveHint, idempotentHint };
    };
    assert.equal(hints('task_list').readOnlyHint, true);
    assert.equal(hints('bash').readOnlyHint ?? false, false);
    assert.equal(hints('bash').destructiveHint ?? true, true);
    assert.equal(hints('task_kill').destructiveHint ?? true, true);
    assert.equal(hints('task_kill').idempotentHint, true);
    for (const tool of tools) {
      assert.equal(tool.inputSchema.type, 'object', tool.name);
      assert.equal(tool.outputSchema.type, 'object', tool.name);
      assert(tool.description.length > 20, tool.name);
    }
    assert.deepEqual(named.bash.inputSchema.required.sort(), ['command', 'description']);
    assert.deepEqual(Object.keys(named.bash.inputSchema.properties).sort(),
      ['command', 'description', 'run_in_background', 'timeout_ms', 'workdir', 'yield_ms']);
  }

  async foreground() {
    let answer = await this.bash('echo hello; exit 3');
    assert.equal(answer.text, 'hello\n[exit code: 3]');
    assert.equal(answer.value.kind, 'foreground');
    assert.equal(answer.value.task.status, 'completed');
    assert.equal(answer.value.task.result.exitCode, 3);
    answer = await this.bash('true');
    assert.equal(answer.text, '(no output)');
    const { text } = await this.call('task_list', {});
    assert(!text.includes(answer.value.task.id), 'an ended foreground task is not listed');
  }

  async refused() {
    for (const [name, args] of [
      ['task_output', { task_id: 'bash-999999' }],
      ['task_output', { task_id: 7 }],
      ['bash', { command: 'true', description: 'x', nonsense: 1 }],
      ['bash', { description: 'x' }],
    ]) {
      const answer = await this.call(name, args);
      assert.equal(answer.isError, true, `${name} ${JSON.stringify(args)}: ${answer.text}`);
      assert(answer.text.length > 0);
    }
  }

  async background() {
    const gate = this.gate();
    const id = await this.start(`echo up; ${gate.wait}echo down; exit 4`);
    await until('first output', async () => (await this.read(id)).includes('up'));
    let answer = await this.call('task_output', { task_id: id });
    assert.equal(answer.text, '(no new output)\n[status: running]');
    assert.equal(answer.value.eof, false);
    const waiting = this.call('task_output', { task_id: id, wait: true, timeout_ms: 15_000 });
    gate.open();
    answer = await waiting;
    assert.equal(answer.text, 'down\n[status: completed, exit code: 4]');
    assert.equal(answer.value.task.status, 'completed');
    assert.equal(answer.value.eof, true);
    assert((await this.call('task_list', {})).text.includes(`${id} [bash] completed — a step`));
  }

  // read gathers a task's output; each call adds what is new.
  async read(id) {
    const answer = await this.call('task_output', { task_id: id });
    this.seen = { ...this.seen, [id]: (this.seen?.[id] ?? '') + answer.value.text };
    return this.seen[id];
  }

  async killed() {
    const id = await this.start('echo up; sleep 904');
    let answer = await this.call('task_kill', { task_id: id, reason: 'enough' });
    assert.equal(answer.text, `requested cancellation of task ${id}`);
    assert.equal(answer.value.outcome, 'requested');
    answer = await this.call('task_output', { task_id: id, wait: true, timeout_ms: 15_000 });
    assert.equal(answer.value.task.status, 'killed', answer.text);
    answer = await this.call('task_kill', { task_id: id });
    assert(answer.text.startsWith(`task ${id} had already finished [status: killed`), answer.text);
    assert.equal(answer.value.outcome, 'already-finished');
  }

  async log() {
    const [begin, gate] = [this.gate(), this.gate()];
    const id = await this.start(`${begin.wait}printf 'some text\\n'; ${gate.wait}printf 'more\\n'`);
    const uri = `afoot://tasks/${id}/log`;
    const { resources } = await this.client.listResources();
    assert(resources.some((r) => r.uri === uri), `${uri} in ${resources.map((r) => r.uri)}`);
    const { resourceTemplates } = await this.client.listResourceTemplates();
    assert(resourceTemplates.some((r) => r.uriTemplate === 'afoot://tasks/{id}/log'));
    const text = async () => (await this.client.readResource({ uri })).contents.map((c) => c.text ?? '').join('');
    assert.equal(await text(), '', 'nothing so far');
    begin.open();
    await until('the log', async () => (await text()) === 'some text\n');
    let subscription;
    if (this.modern) subscription = await this.client.listen({ resourceSubscriptions: [uri] });
    else await this.client.subscribeResource({ uri });
    assert(!this.updates.includes(uri), 'no update before the end');
    gate.open();
    await until('the update', () => this.updates.includes(uri));
    assert.equal(await text(), 'some text\nmore\n');
    const { value } = await this.call('task_output', { task_id: id });
    assert.equal(value.text, 'some text\nmore\n', 'reading the resource consumes nothing');
    assert.equal(value.task.status, 'completed');
    if (subscription) await subscription.close();
    else await this.client.unsubscribeResource({ uri });
    await assert.rejects(this.client.readResource({ uri: 'afoot://tasks/bash-999999/log' }));
    return id;
  }

  async promoted() {
    const gate = this.gate();
    const { text, value } = await this.bash(`echo one; ${gate.wait}echo two`, { yield_ms: 1000 });
    assert.equal(value.kind, 'background');
    assert.equal(text, `one\n[still running as background task ${value.taskId}]`);
    assert.equal(value.text, 'one\n');
    gate.open();
    const rest = await this.call('task_output', { task_id: value.taskId, wait: true, timeout_ms: 15_000 });
    assert.equal(rest.text, 'two\n[status: completed, exit code: 0]');
    assert.equal(rest.value.offset, value.nextOffset);
  }

  async cancelled() {
    const up = join(this.dir, 'up');
    const down = join(this.dir, 'down');
    const leaving = new AbortController();
    const call = this.call('bash', {
      command: `trap 'echo TERM >${down}; exit' TERM; echo >${up}; while :; do sleep 0.02; done`,
      description: 'left alone',
    }, { signal: leaving.signal });
    await until('the command runs', () => existsSync(up));
    leaving.abort(new Error('enough'));
    await assert.rejects(call);
    await until('the command is stopped', () => existsSync(down));
    await until('TERM', () => readFileSync(down, 'utf8') === 'TERM\n');
    await until('it is listed no more', async () => !(await this.call('task_list', {})).text.includes('left alone'));
  }

  async all() {
    for (const step of ['tools', 'foreground', 'refused', 'background', 'killed', 'log', 'promoted', 'cancelled']) {
      const begun = Date.now();
      await this[step]();
      console.log(`ok ${step}, ${Date.now() - begun} ms`);
    }
  }
}
