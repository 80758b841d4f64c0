// The CustomResourceDefinition of a Page.

const CONDITION = {
  type: 'object',
  required: ['type', 'status'],
  properties: {
    type: { type: 'string' },
    status: { type: 'string' },
    reason: { type: 'string' },
    message: { type: 'string' },
    lastTransitionTime: { type: 'string', format: 'date-time' },
    observedGeneration: { type: 'integer', format: 'int64' },
  },
};

const SPEC = {
  type: 'object',
  required: ['title', 'body'],
  properties: {
    title: { description: 'Title of the page, one line.', type: 'string', maxLength: 200 },
    body: { description: 'Text of the page.', type: 'string', maxLength: 65536 },
    copies: {
      description: 'Suffixes of the names of further ConfigMaps with the same text.',
      type: 'array',
      maxItems: 8,
      items: { type: 'string', minLength: 1, maxLength: 63 },
      'x-kubernetes-list-type': 'set',
    },
  },
};

const STATUS = {
  type: 'object',
  properties: {
    observedGeneration: { type: 'integer', format: 'int64' },
    bytes: { description: 'Size of the text.', type: 'integer' },
    written: { description: 'ConfigMaps that have the text.', type: 'integer' },
    conditions: {
      type: 'array',
      items: CONDITION,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    },
  },
};

const column = (name: string, jsonPath: string) => ({ name, type: 'string', jsonPath });

export const CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'pages.example.innkeeper.dev' },
  spec: {
    group: 'example.innkeeper.dev',
    scope: 'Namespaced',
    names: { kind: 'Page', plural: 'pages', singular: 'page' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          column('Title', '.spec.title'),
          column('Published', '.status.conditions[?(@.type=="Published")].status'),
          column('Synced', '.status.conditions[?(@.type=="Synced")].status'),
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: {
          openAPIV3Schema: {
            description: 'A text, as a ConfigMap with the name of the Page.',
            type: 'object',
            required: ['spec'],
            properties: { spec: SPEC, status: STATUS },
          },
        },
      },
    ],
  },
};
