// Conditions of the primary. The host adds the time of the last transition.

import type { Condition } from './documents.js';

/** A condition that is true. */
export function isTrue(type: string, reason: string, message = ''): Condition {
  return { type, status: 'True', reason, message };
}

/** A condition that is false. */
export function isFalse(type: string, reason: string, message = ''): Condition {
  return { type, status: 'False', reason, message };
}

/** A condition that the guest cannot determine. */
export function isUnknown(type: string, reason: string, message = ''): Condition {
  return { type, status: 'Unknown', reason, message };
}
