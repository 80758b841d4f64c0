// Creates a ConfigMap with the text of each Page, and one more for each copy.
import { BadInput, complete, condition, describe, kind } from '@innkeeper/guest';
import type { Guest, KubeObject } from '@innkeeper/guest';

import { CRD } from './crd.js';

interface Page extends KubeObject {
  spec: { title: string; body: string; copies?: string[] };
}
interface ConfigMap extends KubeObject {
  data: Record<string, string>;
}
interface Parameters {
  footer: string;
}

export const PAGE = kind<Page>('example.innkeeper.dev/v1', 'Page', 'pages');
export const CONFIG_MAP = kind<ConfigMap>('v1', 'ConfigMap', 'configmaps');

export const pages: Guest<Page, Parameters> = {
  manifest: describe(PAGE, 'pages-ts', '0.1.0')
    .owns(CONFIG_MAP)
    .crd(CRD)
    .parameters({
      type: 'object',
      required: ['footer'],
      additionalProperties: false,
      properties: { footer: { type: 'string' } },
    })
    .manifest(),

  reconcile(_context, observed) {
    const { title, body, copies = [] } = observed.primary.spec;
    if (title.includes('\n')) {
      throw new BadInput('BadTitle', 'spec.title: a title has one line');
    }
    const text = `# ${title}\n\n${body}\n\n${observed.parameters.footer}\n`;
    const names = [observed.name, ...copies.map((copy) => `${observed.name}-${copy}`)];
    const desired = complete();
    for (const name of names) {
      desired.add(CONFIG_MAP.object({ name }, { data: { 'page.md': text } }));
    }
    const written = observed
      .owned(CONFIG_MAP)
      .filter(({ name, object }) => names.includes(name) && object.data['page.md'] === text);
    const bytes = new TextEncoder().encode(text).length;
    return desired
      .status({ bytes, written: written.length })
      .condition(
        written.length === names.length
          ? condition.isTrue('Published', 'AllWritten')
          : condition.isFalse('Published', 'Writing', `${written.length} of ${names.length} written`),
      );
  },
};
