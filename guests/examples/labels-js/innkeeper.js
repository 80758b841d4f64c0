// Documents in and out: what any guest in JavaScript can use. wit/schema says what is in them.

/** This is all that is desired: what was made before and is not in it goes. */
export const complete = (desired = {}) => ({ tag: 'complete', document: desired });

/** Apply this and keep the rest: something is not ready or not known yet. */
export const partial = (desired = {}) => ({ tag: 'partial', document: desired });

/**
 * Nothing can be said: keep everything, and tell why. `reason` is one CamelCase word, `message` is
 * for people. With `{ permanent: true }` it is tried again only when something changes.
 */
export const failed = (reason, message, more = {}) => ({
  tag: 'failed',
  document: { reason, message, ...more },
});

/**
 * What the component exports, of a module with `describe()` (gives a manifest) and
 * `reconcile(observed)` (gives one of the above). `log(level, line)` is the contract's.
 */
export function exported({ describe, reconcile }, log) {
  return {
    describe: () => JSON.stringify(describe()),
    reconcile(text) {
      // The engine's own console would be WASI: nobody would see it.
      console.log = (...words) => log('info', words.join(' '));
      let outcome;
      try {
        outcome = reconcile(JSON.parse(text));
      } catch (error) {
        // Not caught it would be a trap, and nobody would learn which line it was.
        log('error', `${error}\n${error?.stack ?? ''}`);
        outcome = failed('GuestError', `${error}`);
      }
      return { tag: outcome.tag, val: JSON.stringify(outcome.document) };
    },
  };
}
