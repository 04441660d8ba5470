// What the real server checks of a Node: its taints, and the little of its spec that may change.
import { at, copy, isObject, listAt, objectAt, same, textAt } from './json.ts'
import type { Json, Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { labelValueFault, qualifiedNameFault } from './names.ts'
import { duplicate, forbiddenField, required, unsupported, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

const notReady = 'node.kubernetes.io/not-ready'

export const nodeRules: Rules = {
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
    ...(again ? [duplicate(path, taint)] : []),
  ]
}

function conditionFaults(node: Resource): Cause[] {
  return listAt(node, 'status', 'addresses').flatMap((address, index, all) => (
    all.findIndex((other) => same(other, address)) < index ? [duplicate(`status.addresses[${index}]`, address)] : []))
}

function changeFaults(next: Resource, old: Resource): Cause[] {
  const before = textAt(old, 'spec', 'providerID')
  const after = textAt(next, 'spec', 'providerID')
  const fixed = (node: Resource): Json => {
    const { taints: _taints, unschedulable: _unschedulable, providerID: _provider, ...rest } = copy(objectAt(node, 'spec'))
    if (before !== '' || !isObject(at(old, 'spec'))) return rest
    return rest
  }
  const cidrs = (node: Resource) => ({ podCIDR: at(node, 'spec', 'podCIDR'), podCIDRs: at(node, 'spec', 'podCIDRs') })
  const firstCidrs = at(old, 'spec', 'podCIDR') === undefined
  const others = (node: Resource) => {
    const spec = fixed(node)
    if (isObject(spec)) {
      delete spec['podCIDR']
      delete spec['podCIDRs']
    }
    return spec
  }
  return [
    ...(before !== '' && before !== after ? [forbiddenField('spec.providerID', 'node updates may not change providerID except from "" to valid')] : []),
    ...(firstCidrs || same(cidrs(next), cidrs(old)) ? [] : [forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid')]),
    ...(same(others(next), others(old)) ? [] : [forbiddenField('spec', 'may only update labels, taints, or capacity (and configSource, if the DynamicKubeletConfig feature gate is enabled)')]),
  ]
}
