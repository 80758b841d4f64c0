// Functions for any guest in JavaScript. wit/schema describes the documents.

/** The whole desired state: the host deletes earlier objects that are not in it. */
export const complete = (desired = {}) => ({ tag: 'complete', document: desired });

/** A part of the desired state: the host applies it and deletes nothing. */
export const partial = (desired = {}) => ({ tag: 'partial', document: desired });

/**
 * Fails the run: the host changes no object and retries with backoff. `reason` is one CamelCase
 * word, `message` is for people. With `{ permanent: true }` the host retries only when something
 * changes.
 */
export const failed = (reason, message, more = {}) => ({
  tag: 'failed',
  document: { reason, message, ...more },
});

/**
 * Returns the exports of the component for a module with `describe()`, which returns a manifest,
 * and `reconcile(observed)`, which returns one of the outcomes above. `log(level, line)` is the
 * function of the contract.
 */
export function exported({ describe, reconcile }, log) {
  return {
    describe: () => JSON.stringify(describe()),
    reconcile(text) {
      // The engine's own console uses WASI, which the host does not provide.
      console.log = (...words) => log('info', words.join(' '));
      let outcome;
      try {
        outcome = reconcile(JSON.parse(text));
      } catch (error) {
        // An uncaught exception would be a trap without the line that threw it.
        log('error', `${error}\n${error?.stack ?? ''}`);
        outcome = failed('GuestError', `${error}`);
      }
      return { tag: outcome.tag, val: JSON.stringify(outcome.document) };
    },
  };
}
