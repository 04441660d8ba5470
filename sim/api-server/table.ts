// The `Table` form of objects and lists: what `kubectl get` prints.
import { isObject } from './json.ts'
import type { JsonObject, Resource } from './json.ts'
import type { Column, KindDefinition } from './kind.ts'
import { readVersion } from './store.ts'
import type { Version } from './store.ts'
import { served } from './ground.ts'

export type Include = 'None' | 'Metadata' | 'Object'

/** Whether the first form asked for is a table. */
export function wantsTable(accept: string | undefined): boolean {
  return /^\s*application\/json\s*;[^,]*as=Table/.test(accept ?? '')
}

export function tableOf(kind: KindDefinition, versions: readonly Version[], metadata: JsonObject, now: number, include: Include): JsonObject {
  const columns = kind.custom ? [nameColumn, ...kind.columns] : kind.columns
  return {
    kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata,
    columnDefinitions: columns.map((column) => ({
      name: column.name, type: column.type, format: column.format ?? '', description: column.description ?? '', priority: column.priority,
    })),
    rows: versions.map((version) => row(kind, columns, readVersion(version), now, include)),
  }
}

const nameColumn: Column = { name: 'Name', type: 'string', format: 'name', priority: 0, description: 'The name of the object.', cell: (object) => object.metadata.name ?? '' }

function row(kind: KindDefinition, columns: readonly Column[], object: Resource, now: number, include: Include): JsonObject {
  const cells = columns.map((column) => column.cell(object, now))
  if (include === 'None') return { cells }
  if (include === 'Object') return { cells, object: served(kind, object) }
  return { cells, object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: isObject(object.metadata) ? object.metadata : {} } }
}

export function includeOf(query: URLSearchParams): Include {
  const wanted = query.get('includeObject')
  return wanted === 'None' || wanted === 'Object' ? wanted : 'Metadata'
}
