// What the real server checks of a Node: its taints, and the little of its spec that may change.
import { at, copy, isObject, listAt, objectAt, same, textAt } from './json.ts'
import type { Json, JsonObject, Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { labelValueFault, qualifiedNameFault } from './names.ts'
import { duplicate, forbiddenField, required, unsupported, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

/** A node that has said nothing of itself says it in these words. */
const noNodeInfo = {
  machineID: '', systemUUID: '', bootID: '', kernelVersion: '', osImage: '', containerRuntimeVersion: '', kubeletVersion: '', kubeProxyVersion: '', operatingSystem: '', architecture: '',
}

const notReady = 'node.kubernetes.io/not-ready'

export const nodeRules: Rules = {
  defaults(node) {
    tidySpec(node)
    const status = objectAt(node, 'status')
    node['status'] = status
    status['daemonEndpoints'] ??= { kubeletEndpoint: { Port: 0 } }
    status['nodeInfo'] = { ...noNodeInfo, ...objectAt(status, 'nodeInfo') }
    if (at(status, 'capacity') !== undefined) status['capacity'] = quantities(objectAt(status, 'capacity'))
    if (at(status, 'capacity') !== undefined || at(status, 'allocatable') !== undefined) {
      // A node that does not say what it gives away gives away what it has.
      status['allocatable'] = quantities(objectAt(status, at(status, 'allocatable') === undefined ? 'capacity' : 'allocatable'))
    }
    for (const condition of listAt(status, 'conditions')) {
      if (!isObject(condition)) continue
      condition['lastHeartbeatTime'] ??= null
      condition['lastTransitionTime'] ??= null
    }
  },
  prepareCreate(node, ground) {
    // Admission keeps pods off a node until its controller has seen it Ready and takes this taint away.
    if (ground.planted) return undefined
    const spec = objectAt(node, 'spec')
    const taints = listAt(spec, 'taints')
    const there = taints.some((taint) => textAt(taint, 'key') === notReady && textAt(taint, 'effect') === 'NoSchedule')
    node['spec'] = there ? spec : { ...spec, taints: [...taints, { key: notReady, effect: 'NoSchedule' }] }
    return undefined
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
  },
  check: (next, old) => [...taintFaults(next), ...conditionFaults(next), ...(old === undefined ? [] : changeFaults(next, old))],
}

function tidySpec(node: Resource): void {
  const spec = objectAt(node, 'spec')
  if (spec['unschedulable'] === false) delete spec['unschedulable']
  for (const taint of listAt(spec, 'taints')) if (isObject(taint) && taint['value'] === '') delete taint['value']
  const cidr = textAt(spec, 'podCIDR')
  if (cidr !== '') spec['podCIDRs'] ??= [cidr]
}

function quantities(amounts: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, String(amount)]))
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

function taintFaults(node: Resource): Cause[] {
  const taints = listAt(node, 'spec', 'taints')
  const marks = taints.map((taint) => `${textAt(taint, 'key')}:${textAt(taint, 'effect')}`)
  return taints.flatMap((taint, index) => oneTaint(taint, `metadata.taints[${index}]`, marks.indexOf(marks[index] ?? '') < index))
}

function oneTaint(taint: Json, path: string, again: boolean): Cause[] {
  const key = textAt(taint, 'key')
  const value = textAt(taint, 'value')
  const effect = textAt(taint, 'effect')
  const keyFault = qualifiedNameFault(key)
  const valueFault = labelValueFault(value)
  return [
    ...(keyFault === undefined ? [] : [wrong(`${path}.key`, key, keyFault)]),
    ...(valueFault === undefined ? [] : [wrong(`${path}.value`, value, valueFault)]),
    ...(effect === '' ? [required(`${path}.effect`)] : effects.includes(effect) ? [] : [unsupported(`${path}.effect`, effect, effects)]),
    ...(again ? [duplicate(path, taint, 'taints must be unique by key and effect pair')] : []),
  ]
}

function conditionFaults(node: Resource): Cause[] {
  return listAt(node, 'status', 'addresses').flatMap((address, index, all) => (
    all.findIndex((other) => same(other, address)) < index ? [duplicate(`status.addresses[${index}]`, address)] : []))
}

function changeFaults(next: Resource, old: Resource): Cause[] {
  const before = textAt(old, 'spec', 'providerID')
  const given = at(old, 'spec', 'podCIDR') !== undefined
  return [
    ...(before !== '' && before !== textAt(next, 'spec', 'providerID') ? [forbiddenField('spec.providerID', 'node updates may not change providerID except from "" to valid')] : []),
    ...(given && !same(cidrs(next), cidrs(old)) ? [forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid')] : []),
    ...(same(fixed(next), fixed(old)) ? [] : [forbiddenField('spec', 'may only update labels, taints, or capacity (and configSource, if the DynamicKubeletConfig feature gate is enabled)')]),
  ]
}

function cidrs(node: Resource): Json {
  return [at(node, 'spec', 'podCIDR') ?? null, at(node, 'spec', 'podCIDRs') ?? null]
}

/** What of the spec never changes. */
function fixed(node: Resource): Json {
  const { taints: _1, unschedulable: _2, providerID: _3, podCIDR: _4, podCIDRs: _5, ...rest } = copy(objectAt(node, 'spec'))
  return rest
}
