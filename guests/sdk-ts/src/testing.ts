// Runs guests in tests, with the texts of documents, as the host does. Needs ajv.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

import desired from '../schema/desired.json';
import failure from '../schema/failure.json';
import manifest from '../schema/manifest.json';
import observedList from '../schema/observed-list.json';
import observedObject from '../schema/observed-object.json';
import observed from '../schema/observed.json';
import type { Host, Level } from './context.js';
import type * as documents from './documents.js';
import { InvalidRead, NotFound, Undeclared } from './errors.js';
import type { Guest } from './guest.js';
import { type Kind, type KindName, kindOfParameter, type KubeObject } from './kind.js';
import { reconcile } from './run.js';

const ajv = new Ajv2020({ formats: { uint32: true }, keywords: ['x-kubernetes-int-or-string'] });
const SCHEMAS = {
  desired: ajv.compile(desired),
  failure: ajv.compile(failure),
  manifest: ajv.compile(manifest),
  observed: ajv.compile(observed),
  'observed-list': ajv.compile(observedList),
  'observed-object': ajv.compile(observedObject),
} satisfies Record<string, ValidateFunction>;

/** Throws if a document does not conform to a schema of the contract. */
export function conforms(schema: keyof typeof SCHEMAS, document: unknown): void {
  const validate: ValidateFunction = SCHEMAS[schema];
  if (!validate(document)) {
    throw new Error(`the document does not conform to ${schema}: ${ajv.errorsText(validate.errors)}`);
  }
}

/** The state of a test. */
export interface State<P, Q> {
  /** The primary; apiVersion and kind may be left out. */
  primary: P;
  /** The parameters of the Module. The manifest gets the kinds that they name. */
  parameters?: Q;
  /** The objects of the primary. */
  owned?: KubeObject[];
  /** Other objects that the guest can read. */
  objects?: KubeObject[];
  /** States of the objects with these names; all others are ready. */
  notReady?: Record<string, documents.ReadinessState>;
  /** Desired objects that the host could not apply. */
  unapplied?: documents.Unapplied[];
  /** Kinds of the manifest that the API server does not serve. */
  unserved?: Kind<KubeObject>[];
  /** Whether the primary is being deleted. */
  deleting?: boolean;
  /** The time of the run. */
  now?: Date;
}

/** Runs a guest once and checks all documents against their schemas. */
export function run<P extends KubeObject, Q>(guest: Guest<P, Q>, state: State<P, Q>): Result {
  const { owned = [], objects = [], notReady = {}, now = new Date('2026-01-01T00:00:00Z') } = state;
  conforms('manifest', guest.manifest);
  const manifest = withKinds(guest.manifest, state.parameters);
  if (manifest.primary === undefined) {
    throw new Error('the manifest names no primary: the guest reconciles nothing');
  }
  const { apiVersion, kind } = manifest.primary;
  const primary = { apiVersion, kind, ...state.primary };
  const withReadiness = (object: KubeObject) => ({
    object,
    readiness: { state: notReady[object.metadata?.name ?? ''] ?? 'Ready' },
  });
  const unserved = (state.unserved ?? []).map((one) => one.document());
  const document = parsed<documents.ObservedDocument>({
    object: primary,
    parameters: state.parameters,
    owned: owned.map(withReadiness),
    unapplied: state.unapplied ?? [],
    unserved: unserved.map((one) => ({ scope: 'Namespaced', ...one })),
    deleting: state.deleting ?? false,
    reportReadFields: true,
  });
  conforms('observed', document);
  const lines: Line[] = [];
  const readable = [primary, ...owned, ...objects].map(withReadiness);
  const host = fakeHost(manifest, readable, now, lines);
  const { tag, text } = reconcile(guest, JSON.stringify(document), host);
  const result = JSON.parse(text) as documents.DesiredDocument & documents.Failure;
  conforms(tag === 'failed' ? 'failure' : 'desired', result);
  return new Result(tag, result, lines);
}

/** A line of the log. */
export interface Line {
  level: Level;
  text: string;
}

/** What a run returned. Its methods throw if it returned something else. */
export class Result {
  constructor(
    readonly tag: 'complete' | 'partial' | 'failed',
    readonly document: documents.DesiredDocument & documents.Failure,
    readonly lines: Line[],
  ) {}

  /** The run returned the whole desired state. */
  complete(): this {
    return this.has('complete');
  }

  /** The run returned a part of the desired state. */
  partial(): this {
    return this.has('partial');
  }

  /** The run failed with this reason. */
  failed(reason: string): this {
    this.has('failed');
    if (this.document.reason !== reason) {
      throw new Error(`the reason is ${this.document.reason}, not ${reason}: ${this.message}`);
    }
    return this;
  }

  /** The message of a failure. */
  get message(): string {
    return this.document.message;
  }

  /** Whether a failure is permanent. */
  get permanent(): boolean {
    return this.document.permanent ?? false;
  }

  /** The desired objects of a kind. */
  objects<T extends KubeObject>(kind: Kind<T>): T[] {
    const desired = (this.document.objects ?? []).map((one) => one.object as KubeObject);
    return desired.filter((one): one is T => kind.includes(one));
  }

  /** The desired object of this kind and name. */
  object<T extends KubeObject>(kind: Kind<T>, name: string): T {
    const named = this.objects(kind).filter((one) => one.metadata?.name === name);
    return only(named, `desired objects ${kind.kind} ${name}`);
  }

  /** The policies of the desired object of this kind and name. */
  policies(kind: Kind<KubeObject>, name: string): documents.Policy[] {
    const object = this.object(kind, name);
    return this.document.objects?.find((one) => one.object === object)?.policy ?? [];
  }

  /** The status. */
  get status(): Record<string, unknown> {
    return { ...this.document.status };
  }

  /** The condition of this type. */
  condition(type: string): documents.Condition {
    const conditions = this.document.conditions ?? [];
    return only(
      conditions.filter((one) => one.type === type),
      `conditions ${type}`,
    );
  }

  private has(tag: string): this {
    if (this.tag !== tag) {
      throw new Error(`the outcome is ${this.tag}, not ${tag}: ${JSON.stringify(this.document)}`);
    }
    return this;
  }
}

function only<T>(found: T[], what: string): T {
  const [first] = found;
  if (first === undefined || found.length > 1) {
    throw new Error(`there are ${found.length} ${what}`);
  }
  return first;
}

/** The manifest as the host resolves it, but with plurals that are unknown here. */
function withKinds(manifest: documents.Manifest, parameters: unknown): documents.Manifest {
  const resolved = structuredClone(manifest);
  const values = (parameters ?? {}) as Record<string, KindName | KindName[] | null | undefined>;
  for (const { parameter, role } of manifest.kindParameters ?? []) {
    for (const name of [values[parameter] ?? []].flat()) {
      const kind = kindOfParameter(name).document();
      if (role === 'Primary') {
        resolved.primary = kind;
      } else if (role === 'Owned') {
        (resolved.owned ??= []).push({ kind });
      } else {
        (resolved.reads ??= []).push(kind);
      }
    }
  }
  return resolved;
}

function fakeHost(
  manifest: documents.Manifest,
  objects: documents.ObservedObject[],
  now: Date,
  lines: Line[],
): Host {
  const owned = (manifest.owned ?? []).map((one) => one.kind);
  const primary = manifest.primary === undefined ? [] : [manifest.primary];
  const declared = [...primary, ...(manifest.reads ?? []), ...owned];
  const of = ({ apiVersion, kind }: Kind<KubeObject>, namespace: string) => {
    if (!declared.some((one) => one.apiVersion === apiVersion && one.kind === kind)) {
      throw new Undeclared(`${kind}: the manifest does not declare the kind; add it to reads`);
    }
    return objects.filter(({ object }) => {
      const { metadata, ...one } = object as KubeObject;
      const isThere = namespace === '' || metadata?.namespace === namespace;
      return one.apiVersion === apiVersion && one.kind === kind && isThere;
    });
  };
  return {
    get(kind, namespace, name) {
      const named = of(kind, namespace).find((one) => metadata(one).name === name);
      if (named === undefined) {
        throw new NotFound(`${kind.kind} ${name}: there is no such object`);
      }
      return checked('observed-object', named);
    },
    list(kind, namespace, selector) {
      const items = of(kind, namespace).filter((one) => matches(metadata(one).labels, selector));
      return checked('observed-list', { items });
    },
    nowMs: () => now.getTime(),
    write: (level, text) => lines.push({ level, text }),
  };
}

function metadata(one: documents.ObservedObject): NonNullable<KubeObject['metadata']> {
  return (one.object as KubeObject).metadata ?? {};
}

/** Whether labels match a selector of the form `a=b,c!=d,e`. */
function matches(labels: Record<string, string> = {}, selector: string): boolean {
  const requirements = selector.split(',').filter((one) => one !== '');
  return requirements.every((requirement) => {
    const parts = /^([^!=()]+?)(?:(!=|==?)([^!=()]*))?$/.exec(requirement);
    if (parts === null) {
      throw new InvalidRead(`${requirement}: a test matches only a=b, a!=b and a`);
    }
    const [, key = '', operator, value] = parts;
    if (operator === undefined) {
      return key in labels;
    }
    return (labels[key] === value) === (operator !== '!=');
  });
}

function checked(schema: keyof typeof SCHEMAS, document: unknown): string {
  const text = JSON.stringify(document);
  conforms(schema, JSON.parse(text));
  return text;
}

/** A document as JSON has it, without members that are undefined. */
function parsed<T>(document: T): T {
  return JSON.parse(JSON.stringify(document)) as T;
}
