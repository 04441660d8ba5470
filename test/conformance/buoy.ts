// A custom kind with everything in it that our own kinds use.
export function buoyDefinition(group: string) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `buoys.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural: 'buoys', singular: 'buoy', kind: 'Buoy', listKind: 'BuoyList', shortNames: ['bu'] },
      versions: [{
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        selectableFields: [{ jsonPath: '.spec.colour' }],
        additionalPrinterColumns: [
          { name: 'Colour', type: 'string', jsonPath: '.spec.colour' },
          { name: 'Lit', type: 'string', jsonPath: '.status.conditions[?(@.type=="Lit")].status' },
          { name: 'Depth', type: 'integer', jsonPath: '.spec.depth', priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['colour'],
                properties: {
                  colour: { type: 'string', enum: ['red', 'green', 'yellow'] },
                  depth: { type: 'integer', minimum: 1, maximum: 100, default: 10 },
                  name: { type: 'string', pattern: '^[a-z]+$', minLength: 2, maxLength: 8 },
                  lights: {
                    type: 'array', maxItems: 3,
                    items: { type: 'object', required: ['at'], properties: { at: { type: 'string' }, watts: { type: 'integer', default: 5 } } },
                  },
                  notes: { type: 'object', additionalProperties: { type: 'string' } },
                  anything: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  until: { type: 'string', format: 'date-time' },
                  nothing: { type: 'string', nullable: true },
                  fill: { 'x-kubernetes-int-or-string': true },
                },
              },
              status: {
                type: 'object',
                properties: {
                  phase: { type: 'string' },
                  seen: { type: 'integer' },
                  conditions: {
                    type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'],
                    items: { type: 'object', required: ['type', 'status'], properties: { type: { type: 'string' }, status: { type: 'string' } } },
                  },
                },
              },
            },
          },
        },
      }],
    },
  }
}
