// What is wrong with a pod's spec, wherever it stands: in a pod or in the template of a workload.
import { at, listAt, textAt } from './json.ts'
import type { Json, JsonObject } from './json.ts'
import { labelRule } from './names.ts'
import { duplicate, required, unsupported, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

export function containerFaults(spec: JsonObject, path: string): Cause[] {
  const containers = listAt(spec, 'containers')
  const volumes = listAt(spec, 'volumes').map((volume) => textAt(volume, 'name'))
  const names = containers.map((container) => textAt(container, 'name'))
  return [
    ...(containers.length === 0 ? [required(`${path}.containers`)] : []),
    ...containers.flatMap((container, index) => oneContainer(container, `${path}.containers[${index}]`, volumes)),
    ...names.flatMap((name, index) => (name !== '' && names.indexOf(name) < index ? [duplicate(`${path}.containers[${index}].name`, name)] : [])),
    ...volumes.flatMap((name, index) => (name === '' ? [required(`${path}.volumes[${index}].name`)] : volumes.indexOf(name) < index ? [duplicate(`${path}.volumes[${index}].name`, name)] : [])),
  ]
}

function oneContainer(container: Json, path: string, volumes: readonly string[]): Cause[] {
  const name = textAt(container, 'name')
  return [
    ...(name === '' ? [required(`${path}.name`)] : /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name) ? [] : [wrong(`${path}.name`, name, labelRule)]),
    ...(textAt(container, 'image') === '' ? [required(`${path}.image`)] : []),
    ...listAt(container, 'volumeMounts').flatMap((mount, index) => {
      const volume = textAt(mount, 'name')
      return [
        ...(volumes.includes(volume) ? [] : [{ reason: 'FieldValueNotFound', field: `${path}.volumeMounts[${index}].name`, message: `Not found: ${JSON.stringify(volume)}` } satisfies Cause]),
        ...(textAt(mount, 'mountPath') === '' ? [required(`${path}.volumeMounts[${index}].mountPath`)] : []),
      ]
    }),
  ]
}

export function tolerationFaults(spec: JsonObject, path: string): Cause[] {
  return listAt(spec, 'tolerations').flatMap((toleration, index) => {
    const operator = textAt(toleration, 'operator')
    const effect = textAt(toleration, 'effect')
    const here = `${path}.tolerations[${index}]`
    return [
      ...(['', 'Exists', 'Equal'].includes(operator) ? [] : [unsupported(`${here}.operator`, operator, ['Equal', 'Exists'])]),
      ...(textAt(toleration, 'key') === '' && operator !== 'Exists' ? [wrong(`${here}.operator`, operator, 'operator must be Exists when `key` is empty, which means "match all values and all keys"')] : []),
      ...(['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect) ? [] : [unsupported(`${here}.effect`, effect, ['NoExecute', 'NoSchedule', 'PreferNoSchedule'])]),
      ...(at(toleration, 'tolerationSeconds') !== undefined && effect !== 'NoExecute' ? [wrong(`${here}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")] : []),
    ]
  })
}
