// Node's file system with the one function that the conformance suite imports and
// that Node has from version 22 on. No server scenario calls it.
export * from 'node:fs';
export { default } from 'node:fs';
export function globSync() {
  throw new Error('fs.globSync needs Node 22');
}
