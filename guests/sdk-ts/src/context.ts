// What a run may ask the host for.

import type { ObservedList, ObservedObject as ObjectDocument } from './documents.js';
import type { Kind, KubeObject } from './kind.js';
import { ObservedObject } from './observed.js';

/** The severity of a line in the log. */
export type Level = 'debug' | 'info' | 'warn' | 'error';

/** The imports of a guest. Reads return the texts of documents, or throw a `ReadError`. */
export interface Host {
  get(kind: Kind<KubeObject>, namespace: string, name: string): string;
  list(kind: Kind<KubeObject>, namespace: string, selector: string): string;
  nowMs(): number;
  write(level: Level, line: string): void;
}

/** Which objects a list has: all, or those of a namespace, or those that the selector matches. */
export interface Filter {
  namespace?: string;
  selector?: string;
}

/** The clock, the log and the reads of one run. */
export class Context {
  constructor(private readonly host: Host) {}

  /** Reads one object. The host runs the guest again when the answer changes. */
  get<T extends KubeObject>(kind: Kind<T>, name: string, namespace = ''): ObservedObject<T> {
    const text = this.host.get(kind, namespace, name);
    return new ObservedObject<T>(JSON.parse(text) as ObjectDocument);
  }

  /** Reads objects, ordered by namespace and name. */
  list<T extends KubeObject>(kind: Kind<T>, filter: Filter = {}): ObservedObject<T>[] {
    const { namespace = '', selector = '' } = filter;
    const list = JSON.parse(this.host.list(kind, namespace, selector)) as ObservedList;
    return list.items.map((one) => new ObservedObject<T>(one));
  }

  /** The time of the run. Its passing alone does not run the guest: use `requeue`. */
  now(): Date {
    return new Date(this.host.nowMs());
  }

  /** Writes a line to the host's log. `console.log` does the same. */
  log(level: Level, line: string): void {
    this.host.write(level, line);
  }
}
