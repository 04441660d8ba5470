// One method: its own keys over its template's, taken apart into what is ours (template, action, time-outs) and what the
// program is told.
import { misfits, type AgentMetadata } from '../core/agent-metadata.ts'
import { inputOf, sameKey } from '../core/contract.ts'
import type { Ms } from '../core/model.ts'
import { cloudPrograms } from './cloud-programs.ts'
import { filled, type NodeAsked } from './fence-config-node.ts'
import { readSpan, type Entry } from './fence-config-text.ts'
import type { ConfiguredParameters, ParameterValue } from './fence-config-secret.ts'

/** An entry with the place it stands in, so that every fault can say where. */
export interface Placed extends Entry {
  readonly map: string
  readonly at: string
}

export interface ConfigFault {
  readonly map: string
  readonly key: string
  readonly line: number
  /** Never a value that stands there: Events and logs are read by more people than ConfigMaps, and any value may be a password in the wrong place. */
  readonly says: string
  /** Whether it keeps the configuration from coming into force. Others are told all the same. */
  readonly blocks: boolean
}

export interface MethodSpec {
  readonly name: string
  readonly action: 'on' | 'off'
  readonly agent: string
  /** Template, program, device and plug: what pairs an *on* with its *off*. */
  readonly outlet: string
  readonly device: string
  readonly reach?: string
  readonly claimed?: true
  readonly ends?: true
  /** CSI drivers whose volumes are out of the machine's reach while it is off. */
  readonly drivers?: readonly string[]
  readonly atOnce?: number
  readonly parameters: ConfiguredParameters
  readonly orderWithin: Ms
  readonly statusWithin: Ms
  readonly late: Ms
  readonly verifyWithin?: Ms
}

/** Undefined: the program is not known. */
export type Described = (agent: string) => AgentMetadata | undefined

interface Span {
  readonly byDefault: Ms
  readonly least: Ms
  readonly most: Ms
}

/** `late` is never less than it takes to end a program's group after its deadline. */
const spans = {
  timeout: { byDefault: 30_000, least: 1_000, most: 600_000 },
  status_timeout: { byDefault: 10_000, least: 100, most: 60_000 },
  late: { byDefault: 60_000, least: 5_000, most: 3_600_000 },
  // Shorter than it takes to read a device twice, nothing would ever be proven by it.
  verify: { byDefault: 30_000, least: 5_000, most: 600_000 },
} satisfies Record<string, Span>

const ours: ReadonlySet<string> = new Set(['template', 'action', 'agent_name', 'drivers', 'concurrency', ...Object.keys(spans)])
const agentForm = /^[a-z][a-z0-9_.-]{0,63}$/
const driverForm = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/
const mostDrivers = 32
const mostAtOnce = 16

/** `own` are the method's entries, `templates` the entries of each template by its ConfigMap's name. */
export function methodSpec(
  name: string, place: Omit<Placed, keyof Entry>, own: readonly Placed[], templates: ReadonlyMap<string, readonly Placed[]>, node: NodeAsked, described: Described,
): { readonly spec?: MethodSpec; readonly faults: readonly ConfigFault[] } {
  const faults: ConfigFault[] = []
  const fault = (entry: Placed | undefined, says: string) => {
    faults.push({ map: entry?.map ?? place.map, key: entry?.at ?? place.at, line: entry?.line ?? 1, says: `method ${name}: ${says}`, blocks: true })
  }
  const template = own.find(namesTemplate)
  const from = template === undefined ? [] : templates.get(template.value)
  if (template !== undefined && from === undefined) fault(template, 'template= names no ConfigMap that is there')
  const entries = layered([from ?? [], own])
  const one = (key: string) => entries.get(key)

  const agent = one('agent_name')
  if (agent === undefined && from !== undefined) fault(template, 'neither it nor its template has agent_name=')
  else if (agent !== undefined && !agentForm.test(agent.value)) fault(agent, 'agent_name= is not the name of a program')
  const action = one('action')
  if (action === undefined) fault(undefined, 'action= is missing, and none is taken for granted')
  else if (action.value !== 'on' && action.value !== 'off') {
    fault(action, 'action= is neither off nor on; a reboot is never a fence')
  }

  const spanOf = (key: keyof typeof spans): Ms => {
    const entry = one(key)
    const { byDefault, least, most }: Span = spans[key]
    const read = entry === undefined ? byDefault : readSpan(entry.value)
    if (read !== undefined && read >= least && read <= most) return read
    fault(entry, `${key}= is not a time from ${least} ms to ${most} ms`)
    return byDefault
  }
  const times = { orderWithin: spanOf('timeout'), statusWithin: spanOf('status_timeout'), late: spanOf('late'), ...(one('verify') === undefined ? {} : { verifyWithin: spanOf('verify') }) }
  const atOnce = atOnceOf(one('concurrency'), fault)
  const drivers = driversOf(one('drivers'), fault)
  const parameters = parametersOf([...entries.values()].filter((entry) => !ours.has(sameKey(entry.key))), node, fault)
  if (faults.length === 0 && agent !== undefined) {
    const metadata = described(agent.value)
    const plain = Object.fromEntries(Object.entries(parameters).map(([key, value]) => [key, typeof value === 'string' ? value : undefined]))
    for (const { key, says } of metadata === undefined ? [] : misfits(metadata, plain)) fault(one(sameKey(key)) ?? agent, says)
  }
  if (faults.length > 0 || agent === undefined || (action?.value !== 'on' && action?.value !== 'off')) return { faults }
  const ends = endsOf(agent.value, parameters)
  if (ends && action.value === 'on') fault(one('terminate'), 'terminate= ends a machine for good, and is no action=on')
  if (ends === 'secret') fault(one('terminate'), 'terminate= stands in a Secret, and what ends a machine for good is said in the open')
  if (faults.length > 0) return { faults }
  const where = deviceOf(parameters, agent.value, template?.value)
  const { device } = where
  // Strips of one kind share a template, and racks are wired with the same number on both: without its device an on would go to
  // the other strip, and be on record as given back.
  const outlet = JSON.stringify([template?.value ?? '', agent.value, device, plugOf(parameters)])
  return {
    faults,
    spec: { name, action: action.value, agent: agent.value, outlet, ...where, parameters, ...times, ...(drivers.length === 0 ? {} : { drivers }), ...(atOnce === 1 ? {} : { atOnce }), ...(ends === true ? { ends } : {}) },
  }
}

export function namesTemplate({ key }: Entry): boolean {
  return sameKey(key) === 'template'
}

/** As the programs of clouds read it. */
function endsOf(agent: string, parameters: ConfiguredParameters): true | 'secret' | undefined {
  const value = cloudPrograms.has(agent) ? Object.entries(parameters).find(([key]) => sameKey(key) === 'terminate')?.[1] : undefined
  if (value === undefined) return undefined
  return typeof value !== 'string' ? 'secret' : /^(1|yes|on|true)$/i.test(value.trim()) ? true : undefined
}

function atOnceOf(entry: Placed | undefined, fault: (entry: Placed, says: string) => void): number {
  const count = Number(entry?.value ?? 1)
  if (Number.isSafeInteger(count) && count >= 1 && count <= mostAtOnce) return count
  if (entry !== undefined) fault(entry, `concurrency= is not a number from 1 to ${mostAtOnce}`)
  return 1
}

function driversOf(entry: Placed | undefined, fault: (entry: Placed, says: string) => void): readonly string[] {
  const drivers = entry === undefined ? [] : [...new Set(entry.value.split(/\s+/).filter((word) => word !== ''))]
  const wrong = drivers.findIndex((driver) => !driverForm.test(driver))
  if (entry !== undefined && wrong !== -1) fault(entry, `drivers=: word ${wrong + 1} is not the name of a CSI driver`)
  if (entry !== undefined && (drivers.length === 0 || drivers.length > mostDrivers)) fault(entry, `drivers= names ${drivers.length} CSI drivers: one is needed, and ${mostDrivers} are the most`)
  return drivers
}

/** Later layers win; `-` and `_` are one, as they are for the programs. */
export function layered(layers: readonly (readonly Placed[])[]): ReadonlyMap<string, Placed> {
  return new Map(layers.flat().map((entry) => [sameKey(entry.key), entry]))
}

function parametersOf(entries: readonly Placed[], node: NodeAsked, fault: (entry: Placed, says: string) => void): ConfiguredParameters {
  const parameters: Record<string, ParameterValue> = {}
  for (const entry of entries) {
    const value = valueOf(entry.value, node)
    if (typeof value === 'object' && 'wrong' in value) fault(entry, `${entry.key}: ${value.wrong}`)
    else parameters[entry.key] = value
  }
  // A secret's text is checked when it is known; here any innocent text stands for it.
  const plain = Object.fromEntries(Object.entries(parameters).map(([key, value]) => [key, typeof value === 'string' ? value : 'secret']))
  const input = inputOf('status', plain)
  for (const refusal of 'refused' in input ? input.refused : []) {
    const entry = entries.find((other) => other.key === refusal.key)
    if (entry !== undefined) fault(entry, refusal.says)
  }
  return parameters
}

const secretForm = /^secret:([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)\/([A-Za-z0-9._-]{1,253})$/

function valueOf(text: string, node: NodeAsked): ParameterValue | { readonly wrong: string } {
  if (text.startsWith('secret:')) {
    const [, secret, , key] = secretForm.exec(text) ?? []
    return secret === undefined || key === undefined ? { wrong: 'is not of the form secret:NAME/KEY' } : { secret, key }
  }
  return filled(text, node)
}

const addressKeys = ['ip', 'ipaddr', 'host', 'hostname', 'address', 'url', 'uri', 'devices', 'state_file']

/** Where the device is. Parameters that say it, old names beside new ones; else all runs of the template stand in one line. A
 *  cloud is no device: its machines do not wait for one another, though a wrong plug may name any of them. */
function deviceOf(parameters: ConfiguredParameters, agent: string, template: string | undefined): Pick<MethodSpec, 'device' | 'reach'> {
  const host = addressKeys.map((key) => addressOf(parameters, key)).find((text) => text !== undefined)
  const port = textOf(parameters, 'ipport')
  const address = host === undefined ? undefined : `${host.toLowerCase()}${port === undefined ? '' : `:${port}`}`
  const cloud = cloudPrograms.get(agent)
  if (cloud === undefined) return { device: address ?? template ?? agent }
  const place = [agent, address, ...cloud.place.map((key) => addressOf(parameters, key)), plugOf(parameters)]
  return { device: place.filter((part) => part !== undefined).join(' '), reach: address ?? agent }
}

/** Without whoever logs in and what is asked for: it stands in log lines and refusals, and a URL may bear a password. */
function addressOf(parameters: ConfiguredParameters, key: string): string | undefined {
  return textOf(parameters, key)?.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1').replace(/[?#].*$/s, '')
}

function plugOf(parameters: ConfiguredParameters): string {
  return textOf(parameters, 'plug') ?? textOf(parameters, 'port') ?? ''
}

function textOf(parameters: ConfiguredParameters, key: string): string | undefined {
  const value = Object.entries(parameters).find(([other]) => sameKey(other) === key)?.[1]
  return value === undefined ? undefined : typeof value === 'string' ? value : `${value.secret}/${value.key}`
}
