// CustomResourceDefinitions, made from the schemas that the coordinator reads with: what the API server refuses and what we
// refuse cannot drift apart, and what `kubectl explain` prints is what stands beside the field in the code.
import { holdfastPolicy } from '../coordinator/holdfast-policy.ts'
import { nodeFence } from '../coordinator/node-fence.ts'
import { nodeRecord } from '../coordinator/node-record.ts'
import { nodeRemedy } from '../coordinator/node-remedy.ts'
import { group, version, type Kind } from '../coordinator/schema-kind.ts'
import { shapeOf, type Rule, type Shape } from '../coordinator/schema-shape.ts'
import type { Manifest } from './manifest.ts'

/** What a CRD says of one field: the part of OpenAPI v3 that Kubernetes calls structural. */
export interface Property {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'boolean'
  readonly description: string
  readonly format?: string
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly items?: Property
  readonly properties?: Readonly<Record<string, Property>>
  readonly additionalProperties?: Property
  readonly required?: readonly string[]
  readonly default?: unknown
  readonly 'x-kubernetes-list-type'?: 'map' | 'atomic'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-validations'?: readonly object[]
}

export const kinds: readonly Kind[] = [holdfastPolicy, nodeFence, nodeRecord, nodeRemedy]

export function customResourceDefinitions(): readonly Manifest[] {
  return kinds.map(definitionOf)
}

export function definitionOf(kind: Kind): Manifest {
  const { plural, singular, shortNames, selectable = [] } = kind
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels: { 'app.kubernetes.io/name': 'holdfast' } },
    spec: {
      group,
      scope: 'Cluster',
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular, shortNames, categories: ['holdfast'] },
      versions: [{
        name: version, served: true, storage: true,
        schema: { openAPIV3Schema: rootOf(kind) },
        ...(kind.status === undefined ? {} : { subresources: { status: {} } }),
        additionalPrinterColumns: kind.columns.map(({ name, path, type = 'string', says, wide = false }) => ({
          name, type, jsonPath: path, description: says, ...(wide ? { priority: 1 } : {}),
        })),
        ...(selectable.length === 0 ? {} : { selectableFields: selectable.map((jsonPath) => ({ jsonPath })) }),
      }],
    },
  }
}

export function rootOf({ says, spec, status, rules = [] }: Kind): Omit<Property, 'properties'> & { properties: Record<string, unknown> } {
  return {
    type: 'object', description: says, ...validations(rules), required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
      kind: { type: 'string', description: 'Kind of this object.' },
      metadata: { type: 'object' },
      spec: propertyOf(shapeOf(spec, 'spec')),
      ...(status === undefined ? {} : { status: propertyOf(shapeOf(status, 'status')) }),
    },
  }
}

export function propertyOf(shape: Shape): Property {
  const { says, rules } = shape
  const about = { description: says, ...validations(rules) }
  switch (shape.is) {
    case 'flag': return { type: 'boolean', ...about }
    case 'whole': return { type: 'integer', format: 'int64', ...about, minimum: shape.least, maximum: shape.most }
    case 'map': return { type: 'object', ...about, maxProperties: shape.most, additionalProperties: propertyOf(shape.value) }
    case 'text':
      return {
        type: 'string', ...about, maxLength: shape.longest,
        ...(shape.shortest > 0 ? { minLength: shape.shortest } : {}),
        ...(shape.words === undefined ? {} : { enum: shape.words }),
        ...(shape.pattern === undefined ? {} : { pattern: shape.pattern }),
        ...(shape.format === undefined ? {} : { format: shape.format }),
      }
    case 'list':
      return {
        type: 'array', ...about, maxItems: shape.most, items: propertyOf(shape.item),
        'x-kubernetes-list-type': shape.keys.length === 0 ? 'atomic' : 'map',
        ...(shape.keys.length === 0 ? {} : { 'x-kubernetes-list-map-keys': shape.keys }),
      }
    case 'object': {
      const required = [...shape.fields].filter(([, field]) => field.required).map(([name]) => name)
      return {
        type: 'object', ...about,
        ...(required.length === 0 ? {} : { required }),
        properties: Object.fromEntries([...shape.fields].map(([name, field]) => [name, withDefault(propertyOf(field.shape), field.default)])),
      }
    }
  }
}

function validations(rules: readonly Rule[]): Pick<Property, 'x-kubernetes-validations'> {
  if (rules.length === 0) return {}
  return { 'x-kubernetes-validations': rules.map(({ rule, message, fieldPath }) => ({ rule, message, ...(fieldPath === undefined ? {} : { fieldPath }) })) }
}

function withDefault(property: Property, value: unknown): Property {
  return value === undefined ? property : { ...property, default: value }
}
