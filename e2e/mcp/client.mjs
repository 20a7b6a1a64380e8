// The official client against a daemon: node client.mjs '<JSON>' with
//   {"era": "legacy"|"2026-07-28", "url", "token", "other"}          over HTTP, or
//   {"era": …, "command", "args", "env"}                             over stdio.
// With "greet" it takes the first step alone.
// It prints one line for each step, and fails with the first that goes wrong.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Steps } from './steps.mjs';

const want = JSON.parse(process.argv[2]);
const modern = want.era !== 'legacy';

function transport() {
  if (want.command) return new StdioClientTransport({ command: want.command, args: want.args, env: want.env });
  return new StreamableHTTPClientTransport(new URL(want.url), { authProvider: { token: async () => want.token } });
}

// strangers shows that nobody gets into a session that another token opened, and that
// an ended one is gone.
async function strangers(session, revision) {
  const ask = (token, more) => fetch(want.url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
      'mcp-session-id': session, 'mcp-protocol-version': revision, ...more,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
  const status = async (answer) => { await (await answer).arrayBuffer(); return (await answer).status; };
  assert.equal(await status(ask(want.token)), 200, 'its own');
  assert.equal(await status(ask(want.other)), 404, 'of another session');
  assert.equal(await status(ask('nonsense')), 401, 'of nobody');
  const get = fetch(want.url, {
    headers: { authorization: `Bearer ${want.other}`, accept: 'text/event-stream', 'mcp-session-id': session, 'mcp-protocol-version': revision },
  });
  assert.equal(await status(get), 404, 'the stream of another session');
  const end = fetch(want.url, { method: 'DELETE', headers: { authorization: `Bearer ${want.other}`, 'mcp-session-id': session } });
  assert.equal(await status(end), 404, 'the end of another session');
  assert.equal(await status(ask(want.token)), 200, 'still its own');
  return () => status(ask(want.token));
}

const client = new Client({ name: 'afoot-e2e', version: '1' }, {
  versionNegotiation: { mode: modern ? { pin: want.era } : 'legacy' },
});
const harmless = [
  'Received a response for an unknown message ID', // of a call that was cancelled
  'missing required Mcp-Method header', // the client's notifications lack it
];
client.onerror = (error) => {
  if (!harmless.some((text) => error.message.includes(text))) console.error(`client: ${error.message}`);
};
const way = transport();
await client.connect(way);
console.log(`ok connected to ${client.getServerVersion()?.name}`);
assert.equal(client.getServerVersion()?.name, 'afoot');
assert.equal(client.getServerCapabilities()?.resources?.subscribe, true);
assert((client.getInstructions() ?? '').length > 50, 'the guidance comes as instructions');
const steps = new Steps(client, modern);
try {
  await (want.greet ? steps.tools() : steps.all());
  if (!want.greet && want.url && !modern) {
    const mine = await strangers(way.sessionId, client.getNegotiatedProtocolVersion());
    await way.terminateSession();
    assert.equal(await mine(), 404, 'after its end');
    console.log('ok strangers');
  }
} finally {
  steps.close();
  await client.close();
}
console.log('ok all');
