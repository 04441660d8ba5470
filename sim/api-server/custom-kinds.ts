// From a CustomResourceDefinition to the kinds it makes the server serve.
import { at, copy, isObject, listAt, numberAt, objectAt, textAt } from './json.ts'
import type { JsonObject, Resource } from './json.ts'
import { jsonPathCell } from './json-path.ts'
import type { Column, KindDefinition, Rules, Subresource } from './kind.ts'
import { fillDefaults, prune, schemaFaults } from './schema.ts'

export function customKindsOf(definition: Resource): KindDefinition[] {
  const spec = objectAt(definition, 'spec')
  return listAt(spec, 'versions').flatMap((version) => (isObject(version) && version['served'] !== false ? [customKind(spec, version)] : []))
}

function customKind(spec: JsonObject, version: JsonObject): KindDefinition {
  const group = textAt(spec, 'group')
  const plural = textAt(spec, 'names', 'plural')
  const kind = textAt(spec, 'names', 'kind')
  const schema = objectAt(version, 'schema', 'openAPIV3Schema')
  const hasStatus = at(version, 'subresources', 'status') !== undefined
  const subresources: Subresource[] = [...(hasStatus ? ['status' as const] : []), ...(at(version, 'subresources', 'scale') === undefined ? [] : ['scale' as const])]
  return {
    group, version: textAt(version, 'name'), kind, plural, singular: textAt(spec, 'names', 'singular') || kind.toLowerCase(),
    namespaced: textAt(spec, 'scope') === 'Namespaced',
    shortNames: listAt(spec, 'names', 'shortNames').map(String),
    categories: listAt(spec, 'names', 'categories').map(String),
    collection: `${plural}.${group}`, custom: true, subresources, unconditionalUpdate: false, generation: true, generationWithStatus: !hasStatus,
    selectable: Object.fromEntries(listAt(version, 'selectableFields').map((field) => {
      const path = textAt(field, 'jsonPath').replace(/^\./, '')
      return [path, path.split('.')]
    })),
    rules: customRules(schema, hasStatus),
    columns: columns(version),
    schema,
  }
}

function customRules(schema: JsonObject, hasStatus: boolean): Rules {
  return {
    defaults(object) {
      const { apiVersion, kind } = object
      // Metadata has its own rules, and the two fields of the type are the server's.
      const { metadata, ...bare } = object
      prune(schema, bare)
      fillDefaults(schema, bare)
      for (const field of Object.keys(object)) if (field !== 'metadata') delete object[field]
      Object.assign(object, bare, { metadata, ...(apiVersion === undefined ? {} : { apiVersion }), ...(kind === undefined ? {} : { kind }) })
    },
    prepareCreate(object) {
      if (hasStatus) delete object['status']
      return undefined
    },
    prepareUpdate(next, old) {
      if (!hasStatus) return
      if (old['status'] === undefined) delete next['status']
      else next['status'] = old['status']
    },
    prepareStatus(next, old) {
      const status = next['status']
      for (const field of Object.keys(next)) delete next[field]
      const { status: _status, ...kept } = old
      Object.assign(next, copy(kept), status === undefined ? {} : { status })
    },
    check(next) {
      const { metadata: _metadata, apiVersion: _apiVersion, kind: _kind, ...content } = next
      return schemaFaults({ ...schema, required: listAt(schema, 'required').filter((field) => !['metadata', 'apiVersion', 'kind'].includes(String(field))) }, content, '')
    },
  }
}

function columns(version: JsonObject): Column[] {
  const own = listAt(version, 'additionalPrinterColumns').map((column): Column => {
    const type = textAt(column, 'type')
    return {
      name: textAt(column, 'name'), type: isColumnType(type) ? type : 'string', format: textAt(column, 'format'),
      description: textAt(column, 'description'), priority: numberAt(column, 'priority') ?? 0,
      cell: (object, now) => jsonPathCell(object, textAt(column, 'jsonPath'), type, now),
    }
  })
  return own.length > 0 ? own : [ageColumn]
}

const ageColumn: Column = {
  name: 'Age', type: 'date', priority: 0, description: 'The time since the object was made.',
  cell: (object, now) => jsonPathCell(object, '.metadata.creationTimestamp', 'date', now),
}

function isColumnType(text: string): text is Column['type'] {
  return ['string', 'integer', 'number', 'boolean', 'date'].includes(text)
}
