// The manifest of a guest.

import type * as documents from './documents.js';
import type { Kind, KubeObject } from './kind.js';

type AnyKind = Kind<KubeObject>;

/** Makes a manifest: the kinds that a guest reconciles, creates and reads. */
export class Describe {
  constructor(private readonly document: documents.Manifest) {}

  /** Another module or controller owns the primaries; the guest returns no status. */
  decorates(): this {
    this.document.decorates = true;
    return this;
  }

  /** Kinds of which the guest creates objects. */
  owns(...kinds: AnyKind[]): this {
    return this.own(kinds, {});
  }

  /** Kinds of which the guest creates objects, and which the cluster may lack. */
  ownsIfServed(...kinds: AnyKind[]): this {
    return this.own(kinds, { optional: true });
  }

  /** Kinds into whose existing objects the guest merges fields (policy `merge`). */
  mergesInto(...kinds: AnyKind[]): this {
    return this.own(kinds, { merges: true });
  }

  /** Other kinds that the guest reads. */
  reads(...kinds: AnyKind[]): this {
    (this.document.reads ??= []).push(...kinds.map((kind) => kind.document()));
    return this;
  }

  /**
   * A parameter of the Module names the kind of the primaries, as a `KindName`; the guest
   * decorates them. The kind of `describe` is the default.
   */
  decoratorOfParameter(parameter: string): this {
    return this.decorates().kindParameter({ parameter, role: 'Primary' });
  }

  /** A parameter names kinds of which the guest creates objects: one, or a list of at most 20. */
  ownsParameter(parameter: string): this {
    return this.kindParameter({ parameter, role: 'Owned' });
  }

  /** A parameter names kinds into whose existing objects the guest merges fields. */
  mergesIntoParameter(parameter: string): this {
    return this.kindParameter({ parameter, role: 'Owned', merges: true });
  }

  /** A parameter names other kinds that the guest reads. */
  readsParameter(parameter: string): this {
    return this.kindParameter({ parameter, role: 'Reads' });
  }

  /** A CustomResourceDefinition that the host installs. */
  crd(definition: object): this {
    (this.document.crds ??= []).push(definition);
    return this;
  }

  /** The JSON Schema of the Module's parameters. */
  parameters(schema: object): this {
    this.document.parametersSchema = schema;
    return this;
  }

  /** Which objects of the primary kind the guest reconciles. */
  selects(selector: documents.PrimarySelector): this {
    this.document.selector = selector;
    return this;
  }

  /** The host runs the guest for a deleted primary until it returns `finalized`. */
  finalizes(name = ''): this {
    this.document.finalizer = name;
    return this;
  }

  /** Reconciles every primary again after these seconds even if nothing changed. */
  resync({ seconds }: { seconds: number }): this {
    this.document.resyncSeconds = seconds;
    return this;
  }

  /** The manifest. */
  manifest(): documents.Manifest {
    return this.document;
  }

  private kindParameter(parameter: documents.KindParameter): this {
    (this.document.kindParameters ??= []).push(parameter);
    return this;
  }

  private own(kinds: AnyKind[], more: Omit<documents.OwnedKind, 'kind'>): this {
    const owned = kinds.map((kind) => ({ kind: kind.document(), ...more }));
    (this.document.owned ??= []).push(...owned);
    return this;
  }
}

/** A guest that reconciles a kind. `version` is a semantic version such as 1.2.0. */
export function describe(primary: AnyKind, name: string, version: string): Describe {
  return new Describe({ name, version, primary: primary.document() });
}
