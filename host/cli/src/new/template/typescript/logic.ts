@reconciler@// Each @kind@ becomes a ConfigMap with its text.
@decorator@// Each @kind@ with the annotation @name@/label gets the label @name@ with its value.
@reconciler@import { complete, describe, kind } from '@innkeeper/guest';
@decorator@import { BadInput, complete, describe, kind } from '@innkeeper/guest';
import type { Guest, KubeObject } from '@innkeeper/guest';
@reconciler@
@reconciler@import { CRD } from './crd.js';

@reconciler@interface @kind@ extends KubeObject {
@namespaced_reconciler@  spec: { text: string };
@cluster_reconciler@  spec: { text: string; namespace: string };
@reconciler@}
@reconciler@interface ConfigMap extends KubeObject {
@reconciler@  data: Record<string, string>;
@reconciler@}
@reconciler@
@namespaced_reconciler@export const PRIMARY = kind<@kind@>('@api_version@', '@kind@', '@plural@');
@cluster_reconciler@export const PRIMARY = kind<@kind@>('@api_version@', '@kind@', '@plural@', 'Cluster');
@reconciler@export const CONFIG_MAP = kind<ConfigMap>('v1', 'ConfigMap', 'configmaps');
@namespaced_decorator@export const PRIMARY = kind('@api_version@', '@kind@', '@plural@');
@cluster_decorator@export const PRIMARY = kind('@api_version@', '@kind@', '@plural@', 'Cluster');
@decorator@
@decorator@// At most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends.
@decorator@const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

@reconciler@export const guest: Guest<@kind@> = {
@decorator@export const guest: Guest<KubeObject> = {
  manifest: describe(PRIMARY, '@name@', '0.1.0')
@reconciler@    .owns(CONFIG_MAP)
@reconciler@    .crd(CRD)
@decorator@    .decorates()
@decorator@    // The guest only merges: its ServiceAccount needs no rights to create or delete objects.
@decorator@    .mergesInto(PRIMARY)
    .manifest(),

  reconcile(_context, observed) {
    const { name } = observed;
@namespaced_reconciler@    const { text } = observed.primary.spec;
@namespaced_reconciler@    const configMap = CONFIG_MAP.object({ name }, { data: { text } });
@cluster_reconciler@    const { text, namespace } = observed.primary.spec;
@cluster_reconciler@    const configMap = CONFIG_MAP.object({ name, namespace }, { data: { text } });
@reconciler@    return complete().add(configMap).status({ configMap: name });
@decorator@    const label = observed.annotations['@name@/label'];
@decorator@    if (label === undefined) {
@decorator@      return complete();
@decorator@    }
@decorator@    if (!LABEL_VALUE.test(label)) {
@decorator@      const message = `the annotation @name@/label is not the value of a label: ${label}`;
@decorator@      throw new BadInput('InvalidAnnotation', message);
@decorator@    }
@decorator@    return complete().add(PRIMARY.object({ name, labels: { '@name@': label } }, {}), 'merge');
  },
};
