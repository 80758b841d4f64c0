// The reads of a component in tests.
import type { ReadError, ResourceKind } from 'innkeeper:guest/cluster@0.1.0';

/** The calls, and how the next ones fail. */
export const reads: { calls: unknown[][]; error?: ReadError | undefined } = { calls: [] };

const found = { object: { metadata: { name: 'one' } }, readiness: { state: 'Ready' } };

export function get(kind: ResourceKind, namespace: string, name: string): string {
  reads.calls.push(['get', kind, namespace, name]);
  if (reads.error !== undefined) {
    throw Object.assign(new Error('of the host'), { payload: reads.error });
  }
  return JSON.stringify(found);
}

export function list(kind: ResourceKind, namespace: string, selector: string): string {
  reads.calls.push(['list', kind, namespace, selector]);
  return JSON.stringify({ items: [found] });
}
