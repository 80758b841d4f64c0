// The types of innkeeper.js, for `// @ts-check` in an editor or `tsc --allowJs --noEmit`.
import type { DesiredDocument, Failure, Manifest, ObservedDocument } from './wit/documents.js';

/** An object, as far as its kind has it. */
export interface KubeObject<Spec = unknown, Status = unknown> {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    generation?: number;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    deletionTimestamp?: string;
  };
  spec: Spec;
  status?: Status;
}

/** The `observed` document of a primary with a spec of this type. */
export type Observed<Spec = unknown, Status = unknown> = Omit<ObservedDocument, 'object'> & {
  /** The primary, without `metadata.managedFields`. */
  object: KubeObject<Spec, Status>;
};

/** The result of a run. */
export type Outcome =
  | { tag: 'complete' | 'partial'; document: DesiredDocument }
  | { tag: 'failed'; document: Failure };

/** The whole desired state: the host deletes earlier objects that are not in it. */
export function complete(desired?: DesiredDocument): Outcome;

/** A part of the desired state: the host applies it and deletes nothing. */
export function partial(desired?: DesiredDocument): Outcome;

/**
 * Fails the run: the host changes no object and retries with backoff. `reason` is one CamelCase
 * word, `message` is for people. With `{ permanent: true }` the host retries only when something
 * changes.
 */
export function failed(
  reason: string,
  message: string,
  more?: Omit<Failure, 'reason' | 'message'>,
): Outcome;

/** Returns the exports of the component; `log(level, line)` is the function of the contract. */
export function exported(
  logic: { describe(): Manifest; reconcile(observed: Observed<any, any>): Outcome },
  log: (level: 'debug' | 'info' | 'warn' | 'error', line: string) => void,
): {
  describe(): string;
  reconcile(text: string): { tag: Outcome['tag']; val: string };
};
