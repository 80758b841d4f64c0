// The interface of a guest.

import type { Context } from './context.js';
import type { Outcome } from './desired.js';
import type { Manifest } from './documents.js';
import type { KubeObject } from './kind.js';
import type { Observed } from './observed.js';

/**
 * A guest: a pure function from observed state to desired state. `P` is the type of the primary,
 * `Q` that of the Module's parameters. A guest keeps no state between runs: each has a fresh
 * instance.
 */
export interface Guest<P extends KubeObject = KubeObject, Q = undefined> {
  /** The kinds that the guest reconciles, creates and reads; `describe` makes it. */
  readonly manifest: Manifest;

  /**
   * Computes the desired state from the observed state of one primary. Throws `BadInput` to fail
   * permanently, and any other error to fail with a retry.
   */
  reconcile(context: Context, observed: Observed<P, Q>): Outcome;
}
