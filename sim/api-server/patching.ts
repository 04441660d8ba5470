// PATCH: which kind of patch it is, applying it to the object as the client sees it, and storing the result.
import type { Asked } from './asked.ts'
import { dryRun, metadataFault } from './asked.ts'
import { served } from './ground.ts'
import type { Ground } from './ground.ts'
import { isObject, parse } from './json.ts'
import type { Json, Resource } from './json.ts'
import type { KindDefinition } from './kind.ts'
import { admitNode } from './node-restriction.ts'
import { jsonPatch, mergePatch, operationLimit } from './patch.ts'
import { badRequest, invalid, isRefusal, tooLarge, unprocessable, unsupportedMediaType, wrong } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import { strategicMerge } from './strategic-merge.ts'
import { update } from './write.ts'

const jsonType = 'application/json-patch+json'
const mergeType = 'application/merge-patch+json'
const strategicType = 'application/strategic-merge-patch+json'

export function patchObject(ground: Ground, asked: Asked): { object: Resource; created: boolean } | Refusal {
  const { kind, namespace, name, subresource } = asked.target
  const contentType = (asked.request.headers['content-type'] ?? '').split(';')[0]?.trim() ?? ''
  // Server-side apply is not offered: it would need the ownership of every field.
  const accepted = kind.custom ? [jsonType, mergeType] : [jsonType, mergeType, strategicType]
  if (!accepted.includes(contentType)) return unsupportedMediaType(accepted)
  const parsed = parse(asked.request.body ?? '')
  if ('fault' in parsed) return badRequest(`error decoding patch: ${parsed.fault}`)
  const options = { userName: asked.user.name, dryRun: dryRun(asked), put: false, part: subresource === 'status' ? 'status' as const : 'whole' as const, admit: admitNode(asked) }
  const object = update(ground, kind, namespace, name, options, (copied) => {
    const patched = applyPatch(contentType, served(kind, copied()), parsed.value)
    return isRefusal(patched) ? patched : asStored(kind, name, patched)
  })
  return isRefusal(object) ? object : { object, created: false }
}

function applyPatch(contentType: string, object: Resource, patch: Json): Json | Refusal {
  if (contentType === jsonType) {
    if (Array.isArray(patch) && patch.length > operationLimit) return tooLarge(`The allowed maximum operations in a JSON patch is ${operationLimit}, got ${patch.length}`)
    const patched = jsonPatch(object, patch)
    if (!('fault' in patched)) return patched.document
    return patched.malformed ? badRequest(patched.fault) : unprocessable
  }
  if (!isObject(patch)) return badRequest('error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}')
  if (contentType === mergeType) return mergePatch(object, patch)
  const merged = strategicMerge(object, patch)
  return 'fault' in merged ? { code: 500, reason: 'InternalError', message: merged.fault } : merged.document
}

function asStored(kind: KindDefinition, name: string, patched: Json): Resource | Refusal {
  if (!isObject(patched) || !isObject(patched['metadata'])) {
    return invalid({ group: '', kind: '' }, '', [wrong('patch', JSON.stringify(patched), 'json: cannot unmarshal into Go value')])
  }
  // Checked just above: it has metadata, and the fields of metadata are checked with every write.
  const object = patched as Resource
  const undecodable = metadataFault(object) ?? kind.rules.decode?.(object)
  if (undecodable !== undefined) return invalid({ group: '', kind: '' }, '', [wrong('patch', JSON.stringify(patched), undecodable)])
  object.metadata.name ??= name
  return kind.toStored?.(object) ?? object
}
