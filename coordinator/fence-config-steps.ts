// The three steps of the configuration, put together into levels: first those that isolate, then those of power_management, each of
// which is what must be off for the machine to count as off. What isolates proves nothing about the machine, so it stands alone
// only where a method says which drivers' volumes it puts out of the machine's reach.
import type { FencePath, Method, Ms } from '../core/model.ts'
import type { ConfigFault, Described, MethodSpec, Placed } from './fence-config-method.ts'
import type { ConfiguredMethod } from './fence-config.ts'
import { selectorKey } from './fence-config-node.ts'
import { readSpan } from './fence-config-text.ts'
import { restartInstance, terminateInstance, terminating, type Instance } from './fence-config-instance.ts'

export interface Arranged {
  readonly levels: readonly (readonly Method[])[]
  readonly methods: readonly ConfiguredMethod[]
  readonly beside: Beside
}

/** What the core has on the path beside its levels: what waits for crash kernels, and what becomes of a node that is back. */
export type Beside = Pick<FencePath, 'dumpsWithin' | 'announcesWithin' | 'cordons'>
export type Dumps = Pick<FencePath, 'dumpsWithin' | 'announcesWithin'>

type StepName = 'isolation' | 'power_management' | 'recovery'
const stepNames: readonly StepName[] = ['isolation', 'power_management', 'recovery']

interface Step {
  readonly entry: Placed
  /** Names of methods, level by level. */
  readonly levels: readonly (readonly string[])[]
}

export interface Steps {
  readonly steps: Readonly<Partial<Record<StepName, Step>>>
  readonly dumps: Dumps
  readonly faults: readonly ConfigFault[]
}

/** A dump is of minutes, and its kernel is up within them; whoever waits longer than an hour for a dead machine wants no fence. */
const [shortestDump, longestDump]: readonly [Ms, Ms] = [1_000, 3_600_000]
const dumpKeys: ReadonlyMap<string, keyof Dumps> = new Map([['kdump', 'dumpsWithin'], ['kdump_within', 'announcesWithin']])
const mostLevels = 9
const mostMethods = 16
/** Nodes are under quarantine as long as they are fenced, whatever is written; the one that is more than that is *unschedulable* at the end. */
const [unschedulable, schedulable] = ['mark-unschedulable', 'mark-schedulable']
const marking: ReadonlySet<string> = new Set([unschedulable, schedulable])

/** Programs that cut a machine off from a fabric, or that prove nothing by themselves. Their *off* is not a
 *  machine that is off: measured, the kernel behind a switched-off port goes on counting. */
const notPower: ReadonlySet<string> = new Set([
  'fence_brocade', 'fence_cisco_mds', 'fence_compute', 'fence_evacuate', 'fence_ifmib', 'fence_mpath', 'fence_sanbox2', 'fence_scsi',
  'fc-switch', 'storage', 'switch-snmp', 'fence_ack_manual', 'fence_dummy', 'fence_heuristics_ping', 'fence_heuristics_resource', 'fence_kdump', 'fence_sbd',
])

export function stepsOf(config: ReadonlyMap<string, Placed>): Steps {
  const steps: Partial<Record<StepName, Step>> = {}
  const faults: ConfigFault[] = []
  const dumps: { -readonly [Key in keyof Dumps]: Dumps[Key] } = {}
  for (const entry of config.values()) {
    const spanOf = dumpKeys.get(entry.key)
    if (spanOf !== undefined) {
      // Of this node none is waited for, whatever a layer below says.
      if (entry.value === '') continue
      const span = readSpan(entry.value)
      if (span === undefined || span < shortestDump || span > longestDump) faults.push(faultAt(entry, `${entry.key}= is not a time from ${shortestDump} ms to ${longestDump} ms`, true))
      else dumps[spanOf] = span
      continue
    }
    const name = stepNames.find((known) => known === entry.key)
    if (name === undefined) {
      if (entry.key !== 'node_name' && entry.key !== selectorKey) faults.push(faultAt(entry, `${entry.key}= is not known; node_name, ${selectorKey}, ${[...dumpKeys.keys()].join(', ')} and ${stepNames.join(', ')} are`, true))
      continue
    }
    const text = entry.value.trim()
    const levels = text === '' ? [] : text.split('|').map((level) => level.trim().split(/\s+/).filter((word) => word !== ''))
    if (levels.some((level) => level.length === 0)) faults.push(faultAt(entry, `${name}= has an empty level`, true))
    if (levels.some((level) => new Set(level).size < level.length)) faults.push(faultAt(entry, `${name}= names a method twice in one level`, true))
    if (levels.length > mostLevels || levels.flat().length > mostMethods) {
      faults.push(faultAt(entry, `${name}= has more than ${mostLevels} levels or ${mostMethods} methods`, true))
    }
    steps[name] = { entry, levels }
  }
  const early = config.get('kdump_within')
  if (early !== undefined && !config.has('kdump')) faults.push(faultAt(early, 'kdump_within= waits for a word that nothing is waited for after: kdump= is missing', true))
  return { steps, faults, dumps }
}

export interface Arrangement {
  readonly arranged: Arranged
  readonly faults: readonly ConfigFault[]
}

/** The methods of the Node's own instance, where a step names them and nobody has written one of that name; or why there are none. */
export function builtIn(steps: Steps, specs: ReadonlyMap<string, MethodSpec>, instance: Instance | undefined, described: Described): BuiltIn {
  const own = new Map<string, MethodSpec>()
  const refused = new Map<string, string>()
  const named = new Set(stepNames.flatMap((step) => steps.steps[step]?.levels.flat() ?? []))
  for (const name of [restartInstance, terminateInstance]) {
    if (!named.has(name) || specs.has(name)) continue
    const found = instance === undefined ? `${name} ${needs.get(name) ?? ''}` : 'refused' in instance ? instance.refused : name === restartInstance ? instance.spec : terminating(instance, described)
    if (typeof found === 'string') refused.set(name, found)
    else own.set(name, found)
  }
  return { specs: new Map([...specs, ...own]), refused }
}

export interface BuiltIn {
  readonly specs: ReadonlyMap<string, MethodSpec>
  readonly refused: ReadonlyMap<string, string>
}

const needs: ReadonlyMap<string, string> = new Map([
  [restartInstance, 'needs a Node whose spec.providerID names an instance of aws, azure, gce or openstack, or, where its policy says cloudCredentials, a machine of vsphere'],
  [terminateInstance, 'needs a Node whose spec.providerID names an instance of aws'],
])

/** `ill`: methods with faults of their own. How they would fit in is not said: one fault, one line. `mapOf`: the ConfigMap that writes a method. */
export function arrange(steps: Steps, { specs, refused }: BuiltIn, ill: ReadonlySet<string>, mapOf: (method: string) => string): Arrangement {
  const named = stepNames.flatMap((step) => steps.steps[step]?.levels.flat().map((method, index) => ({ step, method, word: index + 1 })) ?? [])
  const faults = named.flatMap(({ step, method, word }) => {
    const says = ill.has(method) ? undefined : faultOf(step, method, word, specs.get(method), refused)
    const entry = steps.steps[step]?.entry
    return says === undefined || entry === undefined ? [] : [faultAt(entry, says, true)]
  })
  const { levels, fault } = levelsOf(steps, specs)
  // A level may be empty because of a method that has a fault already: that one is told, and no other.
  if (fault !== undefined && faults.length === 0 && ill.size === 0) faults.push(fault)
  const ons = [...specs.values()].filter((spec) => spec.action === 'on' && named.some(({ method }) => method === spec.name))
  const written = backOrder.flatMap((step) => steps.steps[step]?.levels.flat() ?? [])
  const methods = [...new Set(levels.flat())].flatMap((name) => {
    const spec = specs.get(name)
    if (spec === undefined) return []
    const on = ons.find(({ outlet }) => outlet === spec.outlet)
    const cutsOff = isolating(steps).has(name)
    return [{ ...configured(spec, on, cutsOff), ...placeOf(on === undefined ? undefined : written.indexOf(on.name), cutsOff) }]
  })
  faults.push(...idle(specs, named.map(({ method }) => method), methods, ill.size > 0, mapOf))
  const back = named.filter(({ step }) => step === 'recovery').map(({ method }) => method).findLast((name) => marking.has(name) && !specs.has(name))
  const whole = levels.map((level) => level.flatMap((name) => methods.filter((method) => method.name === name)))
  return { arranged: { levels: whole, methods, beside: { ...steps.dumps, ...(back === unschedulable ? { cordons: true } : {}) } }, faults }
}

/** In which the *on* methods of the steps are run. */
const backOrder: readonly StepName[] = ['power_management', 'recovery', 'isolation']
/** More than all methods of a configuration. */
const last = 1_000

/** Where nobody has written it: a machine's power first, and last what it was cut off from. */
function placeOf(written: number | undefined, cutsOff: boolean): { readonly backAt?: number } {
  if (written !== undefined) return { backAt: written + 1 }
  return cutsOff ? { backAt: last } : {}
}

/** What a step of power switches anyway is not isolated by: its *off* is the machine's. */
function isolating({ steps }: Steps): ReadonlySet<string> {
  const power = new Set(steps.power_management?.levels.flat())
  return new Set(steps.isolation?.levels.flat().filter((name) => !power.has(name)))
}

/** Names of *off* methods, level by level. */
function levelsOf(steps: Steps, specs: ReadonlyMap<string, MethodSpec>): { readonly levels: readonly (readonly string[])[]; readonly fault?: ConfigFault } {
  const { isolation, power_management: power } = steps.steps
  const offs = (step: Step | undefined) => (step?.levels ?? []).map((level) => level.filter((name) => specs.get(name)?.action === 'off'))
  const before = offs(isolation).map((level) => level.filter((name) => isolating(steps).has(name))).filter((level) => level.length > 0)
  const levels = offs(power)
  if (isolation !== undefined && levels.length === 0 && before.some((level) => level.every((name) => specs.get(name)?.drivers === undefined))) {
    const says = 'isolation= alone proves nothing about the machine: methods that switch its power belong into power_management=, and what puts volumes out of its reach says so with drivers='
    return { levels: [], fault: faultAt(isolation.entry, says, true) }
  }
  if (power !== undefined && levels.some((level) => level.length === 0)) {
    return { levels: [], fault: faultAt(power.entry, 'a level of power_management= has no method with action=off', true) }
  }
  const joined = levels.find((level) => level.length > 1 && level.some((name) => specs.get(name)?.ends === true))
  if (power !== undefined && joined !== undefined) return { levels: [], fault: faultAt(power.entry, 'what ends the machine for good stands alone in its level of power_management=', true) }
  return { levels: [...before, ...levels] }
}

function faultOf(step: StepName, name: string, word: number, spec: MethodSpec | undefined, refused: ReadonlyMap<string, string>): string | undefined {
  if (spec === undefined && marking.has(name)) return undefined
  if (spec === undefined && refused.has(name)) return refused.get(name)
  if (spec === undefined) return `${step}=: method ${word} is written nowhere: there is no fence-method-NAME of its name`
  if (step === 'recovery' && spec.action === 'off') return `recovery= names ${name}, which switches off`
  if (step === 'power_management' && spec.action === 'off' && notPower.has(spec.agent)) {
    return `power_management= names ${name}, but ${spec.agent} does not switch a machine's power: it belongs into isolation=`
  }
  if (step === 'isolation' && spec.ends === true) return `isolation= names ${name}, which ends the machine for good: it belongs into power_management=`
  if (step === 'power_management' && spec.action === 'off' && spec.drivers !== undefined) {
    return `power_management= names ${name}, whose drivers= is for a method that isolates: with its power a machine loses every volume`
  }
  return undefined
}

function configured(spec: MethodSpec, on: MethodSpec | undefined, cutsOff: boolean): ConfiguredMethod {
  const { outlet: _, action: __, drivers = [], ...method } = spec
  // A device may take far longer to come up than to go down; one that is told twice is given the longer time.
  const onTimes = on && { orderWithin: Math.max(on.orderWithin, method.orderWithin), late: Math.max(on.late, method.late) }
  return { ...method, digest: '', on: on?.parameters ?? method.parameters, ...(onTimes === undefined ? {} : { onTimes }), ...(cutsOff ? { isolates: drivers } : {}) }
}

/** What is written and never used is told, because its author thinks otherwise. */
function idle(specs: ReadonlyMap<string, MethodSpec>, named: readonly string[], methods: readonly ConfiguredMethod[], lacking: boolean, mapOf: (method: string) => string): ConfigFault[] {
  const cut = new Set(methods.map((method) => specs.get(method.name)?.outlet))
  return [...specs.values()].flatMap((spec) => {
    const at = { map: mapOf(spec.name), key: `fence-method-${spec.name}`, line: 1, blocks: false }
    if (!named.includes(spec.name)) return [{ ...at, says: `method ${spec.name} is named by no step` }]
    if (spec.action === 'on' && !lacking && !cut.has(spec.outlet)) return [{ ...at, says: `method ${spec.name} has the outlet of no off method: it is never run` }]
    return []
  })
}

function faultAt(entry: Placed, says: string, blocks: boolean): ConfigFault {
  return { map: entry.map, key: entry.at, line: entry.line, says, blocks }
}
