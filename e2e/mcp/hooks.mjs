// Hands the conformance suite fs.mjs in the place of Node's own "fs".
export function resolve(specifier, context, next) {
  if (specifier === 'fs' && context.parentURL?.includes('/@modelcontextprotocol/conformance/')) {
    return { url: new URL('fs.mjs', import.meta.url).href, shortCircuit: true };
  }
  return next(specifier, context);
}
