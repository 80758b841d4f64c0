// The imports of a component, as wit/guest.wit declares them.

declare module 'innkeeper:guest/cluster@0.1.0' {
  export interface ResourceKind {
    apiVersion: string;
    kind: string;
  }
  export type ReadError =
    | { tag: 'not-found' }
    | { tag: 'not-served' }
    | { tag: 'forbidden'; val: string }
    | { tag: 'undeclared' }
    | { tag: 'invalid'; val: string };
  /** Returns an `observed-object` document; throws an error whose `payload` is a `ReadError`. */
  export function get(kind: ResourceKind, namespace: string, name: string): string;
  /** Returns an `observed-list` document; throws as `get` does. */
  export function list(kind: ResourceKind, namespace: string, labelSelector: string): string;
}

declare module 'innkeeper:guest/clock@0.1.0' {
  /** Milliseconds since 1970, the same during a run. */
  export function nowMs(): number;
}

declare module 'innkeeper:guest/log@0.1.0' {
  export type Level = 'debug' | 'info' | 'warn' | 'error';
  /** Writes a line to the host's log. */
  export function write(level: Level, message: string): void;
}
