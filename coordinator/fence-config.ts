// The fence ConfigMaps in the form of the node fencing proposal: `fence-config-<node>` over those of the sets it is in, over `fence-config-default`; methods
// that take their device from `fence-method-template-*`. Nothing here throws: what is wrong is a fault with its ConfigMap,
// key and line, all of them at once, and the last good configuration of the node stays in force meanwhile.
import { sameKey } from '../core/contract.ts'
import type { FencePath, Method, NodeName } from '../core/model.ts'
import type { KubeObject } from './api.ts'
import { digestOf, missingSecrets, type ConfiguredParameters, type MissingSecret, type SecretLookup } from './fence-config-secret.ts'
import { instanceOf, restartInstance, type Claim, type Instance } from './fence-config-instance.ts'
import { filled, selectorKey, selectorOf, selects, wordless, type NodeAsked, type NodeWords, type Selector } from './fence-config-node.ts'
import { layered, methodSpec, namesTemplate, type ConfigFault, type Described, type MethodSpec, type Placed } from './fence-config-method.ts'
import { arrange, builtIn, stepsOf, type Arranged, type Beside as InForce } from './fence-config-steps.ts'
import { readProperties } from './fence-config-text.ts'

export type { NodeWords } from './fence-config-node.ts'
export type { ConfigFault, Described } from './fence-config-method.ts'

export interface FenceConfigMap {
  readonly name: string
  readonly data: Readonly<Record<string, string>>
}

/** What the runner needs beside what the core sees. Secrets are references here. */
export interface ConfiguredMethod extends Method {
  /** For *off* and *status*. */
  readonly parameters: ConfiguredParameters
  /** For *on*: the method that was written for it, or the same device asked for *on*. */
  readonly on: ConfiguredParameters
  /** Of the method that was written for it, never shorter than those of *off*. Undefined: none was. */
  readonly onTimes?: Times
  /** How many runs its device bears at once; one, where it is not said. */
  readonly atOnce?: number
}

type Times = Pick<Method, 'orderWithin' | 'late'>

/** How long an order may take, and how long after it may still land. */
export function timesOf(method: ConfiguredMethod, action: 'on' | 'off'): Times {
  return action === 'on' ? method.onTimes ?? method : method
}

export interface NodeFenceConfig {
  readonly path: FencePath
  readonly methods: Readonly<Record<string, ConfiguredMethod>>
  readonly faults: readonly ConfigFault[]
  /** The last good one, because the present text has faults that block. */
  readonly outdated: boolean
}

/** Only text is configuration; what else stands there is not read. */
export function textData(object: KubeObject): Readonly<Record<string, string>> {
  const { data } = object as KubeObject & { data?: Record<string, unknown> } // ConfigMaps and Secrets both have it, or leave it out
  return Object.fromEntries(Object.entries(data ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

export interface FenceConfigs {
  /** What is in force for the node, given what was in force before, and what its Node says of its instance and of itself. */
  forNode(node: NodeName, before?: NodeFenceConfig, claim?: Claim, words?: NodeWords): NodeFenceConfig
  /** The ConfigMaps that make it, templates too. */
  sources(node: NodeName, words?: NodeWords): readonly FenceConfigMap[]
  /** Names of the ConfigMaps that are laid over one another for it, the most specific last. */
  layers(node: NodeName, words?: NodeWords): readonly string[]
  /** Faults of templates and maps as such, whichever nodes use them. */
  readonly faults: readonly ConfigFault[]
}

const nodePrefix = 'fence-config-'
const templatePrefix = 'fence-method-template-'
const methodPrefix = 'fence-method-'
const defaultName = `${nodePrefix}default`

/** Of which nodes it is, stands in it, and its name is its own. */
export function isOfASet({ data }: FenceConfigMap): boolean {
  return readProperties(data['config.properties'] ?? '').entries.some(({ key }) => key === selectorKey)
}

export function isFenceConfigMap(name: string): boolean {
  return name.startsWith(nodePrefix) || name.startsWith(templatePrefix)
}

/** `described`: what the program of this name says of itself. */
export function readFenceConfigs(maps: readonly FenceConfigMap[], secrets: SecretLookup, salt: string, described: Described = () => undefined): FenceConfigs {
  const read = new Map(maps.filter((map) => isFenceConfigMap(map.name)).map((map) => [map.name, readMap(map)]))
  const templates = new Map([...read].filter(([name]) => name.startsWith(templatePrefix)).map(([name, map]) => [name, map.template]))
  const unclear = [...read.values()].filter(({ name, ofASet, selector }) => ofASet && selector === undefined && name !== defaultName).flatMap(({ faults }) => faults)
  const broken = new Map([...read.values()].map((map) => [map.name, map.faults.filter((fault) => fault.blocks)]))
  return {
    faults: [...read.values()].flatMap((map) => map.faults),
    layers: (name, words = wordless) => layersOf({ ...words, name }).map((map) => map.name),
    sources(node, words = wordless) {
      const layers = layersOf({ ...words, name: node })
      const names = new Set([...layers.map(({ name }) => name), ...layers.flatMap(templatesOf)])
      return maps.filter(({ name }) => names.has(name))
    },
    forNode(name, before, claim, words = wordless) {
      const node = { ...words, name }
      const instance = instanceOf(claim, secrets)
      const layers = layersOf(node)
      if (layers.length === 0 && instance === undefined && unclear.length === 0) return { path: { levels: [], faults: [] }, methods: {}, faults: [], outdated: false }
      const { arranged, faults } = parseNode(node, layers, { templates, broken, unclear, described }, instance)
      // What two Nodes name is nobody's any more: the last good one would go on striking one of them.
      const kept = instance !== undefined && 'refused' in instance && instance.disputed && hasClaimed(before) ? undefined : before
      return sealed(inForce(arranged, faults, kept), secrets, salt, (method, missing) => placeOf(method, missing, layers, templates))
    },
  }

  /** The most specific last: what asks for more labels is of fewer nodes. */
  function layersOf(node: NodeAsked): readonly ReadMap[] {
    const own = node.name === 'default' ? undefined : read.get(`${nodePrefix}${node.name}`)
    const sets = [...read.values()].filter(({ selector }) => selector !== undefined && selects(selector, node)).toSorted((one, other) => sizeOf(one) - sizeOf(other) || (one.name < other.name ? -1 : 1))
    return [read.get(defaultName), ...sets, own?.ofASet === true ? undefined : own].filter((map) => map !== undefined)
  }
}

function sizeOf({ selector }: ReadMap): number {
  return selector?.size ?? 0
}

function templatesOf(map: ReadMap): readonly string[] {
  return [...map.methods.values()].flatMap((placed) => placed.filter(namesTemplate).map(({ value }) => value))
}

function hasClaimed(config: NodeFenceConfig | undefined): boolean {
  return Object.values(config?.methods ?? {}).some((method) => method.claimed === true)
}

/** The new one if nothing in it blocks; else the last good one, with the faults of the new one beside it. */
function inForce(arranged: Arranged, faults: readonly ConfigFault[], before: NodeFenceConfig | undefined): NodeFenceConfig {
  const told = faults.filter((fault) => fault.blocks).map(sentenceOf)
  if (told.length === 0) {
    const methods = Object.fromEntries(arranged.methods.map((method) => [method.name, method]))
    return { path: { levels: arranged.levels, faults: [], ...arranged.beside }, methods, faults, outdated: false }
  }
  const levels = before?.path.levels ?? []
  return { path: { levels, faults: told, ...besideOf(before?.path) }, methods: before?.methods ?? {}, faults, outdated: levels.length > 0 }
}

function besideOf({ dumpsWithin, announcesWithin, cordons }: InForce = {}): InForce {
  return { ...(dumpsWithin === undefined ? {} : { dumpsWithin }), ...(announcesWithin === undefined ? {} : { announcesWithin }), ...(cordons === undefined ? {} : { cordons }) }
}

export function sentenceOf(fault: ConfigFault): string {
  return `ConfigMap ${fault.map}, ${fault.key}, line ${fault.line}: ${fault.says}`
}

/** Digests are made of the secrets of this moment, for a last good configuration too; a Secret that is not there yet is told
 *  and blocks nothing: the method says so itself when it is run. */
function sealed(config: NodeFenceConfig, secrets: SecretLookup, salt: string, placed: (method: string, missing: MissingSecret) => FaultPlace): NodeFenceConfig {
  const methods = Object.fromEntries(Object.entries(config.methods).map(([name, method]): [string, ConfiguredMethod] => {
    return [name, { ...method, digest: digestOf(method.agent, method.parameters, secrets, salt) }]
  }))
  const levels = config.path.levels.map((level) => level.flatMap((method) => coreMethod(methods[method.name])))
  const missing = Object.values(methods).flatMap((method) => {
    const lacking = new Map([...missingSecrets(method.parameters, secrets), ...missingSecrets(method.on, secrets)].map((one) => [one.says, one]))
    return [...lacking.values()].map((one): ConfigFault => ({ ...placed(method.name, one), says: `method ${method.name}: ${one.says}`, blocks: false }))
  })
  return { ...config, path: { ...config.path, levels }, methods, faults: [...config.faults, ...missing] }
}

type FaultPlace = Pick<ConfigFault, 'map' | 'key' | 'line'>

/** Where the reference is written: by the method itself or its template, or else, where that is of its *on*, by another one of the node's. */
function placeOf(method: string, { key, of }: MissingSecret, layers: readonly ReadMap[], templates: ReadonlyMap<string, readonly Placed[]>): FaultPlace {
  const all = layers.toReversed().flatMap((layer) => [...layer.methods].map(([name, entries]) => ({ layer, name, entries })))
  const own = all.filter(({ name }) => name === method)
  const written = [...own, ...all].flatMap(({ entries }) => entries.flatMap((entry) => (namesTemplate(entry) ? templates.get(entry.value) ?? [] : [entry])))
  const entry = written.find((one) => sameKey(one.key) === sameKey(key) && one.value === `secret:${of.secret}/${of.key}`)
  if (entry !== undefined) return { map: entry.map, key: entry.at, line: entry.line }
  return { map: (own[0]?.layer ?? layers.at(-1))?.name ?? defaultName, key: `${methodPrefix}${method}`, line: 1 }
}

function coreMethod(method: ConfiguredMethod | undefined): Method[] {
  if (method === undefined) return []
  const { parameters: _, on: __, onTimes: ___, atOnce: ____, ...seen } = method
  return [seen]
}

interface ReadMap {
  readonly name: string
  readonly ofASet: boolean
  /** Undefined though it is of a set: it cannot be told of which. */
  readonly selector?: Selector
  readonly config: readonly Placed[]
  readonly template: readonly Placed[]
  readonly methods: ReadonlyMap<string, readonly Placed[]>
  readonly faults: readonly ConfigFault[]
}

function readMap(map: FenceConfigMap): ReadMap {
  const faults: ConfigFault[] = []
  const methods = new Map<string, readonly Placed[]>()
  let config: readonly Placed[] = []
  let template: readonly Placed[] = []
  const isTemplate = map.name.startsWith(templatePrefix)
  for (const [key, text] of Object.entries(map.data)) {
    const { entries, faults: wrong } = readProperties(text)
    const placed = entries.map((entry) => ({ ...entry, map: map.name, at: key }))
    const known = isTemplate ? key === 'template.properties' : key === 'config.properties' || key.startsWith(methodPrefix)
    if (!known) faults.push({ map: map.name, key, line: 1, says: 'is not a key that is read here', blocks: false })
    else faults.push(...wrong.map((fault) => ({ ...fault, map: map.name, key, blocks: true })))
    if (key === 'template.properties') template = placed
    else if (key === 'config.properties') config = placed
    else if (known) methods.set(key.slice(methodPrefix.length), placed)
  }
  const { selector, fault } = setOf(map.name, config)
  if (fault !== undefined) faults.push(fault)
  return { name: map.name, ofASet: config.some(({ key }) => key === selectorKey), config, template, methods, faults, ...(selector === undefined ? {} : { selector }) }
}

function setOf(name: string, config: readonly Placed[]): { readonly selector?: Selector; readonly fault?: ConfigFault } {
  const entry = config.find(({ key }) => key === selectorKey)
  if (entry === undefined) return {}
  const faultOf = (says: string): ConfigFault => ({ map: name, key: entry.at, line: entry.line, says, blocks: true })
  if (name === defaultName) return { fault: faultOf(`${selectorKey}= is not for ${defaultName}, which underlies every node`) }
  if (config.some(({ key }) => key === 'node_name')) return { fault: faultOf(`${selectorKey}= stands beside node_name=: the ConfigMap is of a set of nodes, or of one`) }
  const selector = selectorOf(entry)
  return 'wrong' in selector ? { fault: faultOf(selector.wrong) } : { selector }
}

/** Of a Node that names its instance and has no map, nor may have one. */
const unwritten: readonly Placed[] = [{ map: defaultName, at: 'config.properties', key: 'power_management', value: restartInstance, line: 1 }]

/** What is none of the node's layers, and counts for it. */
interface Beside {
  readonly templates: ReadonlyMap<string, readonly Placed[]>
  /** Faults of each map. */
  readonly broken: ReadonlyMap<string, readonly ConfigFault[]>
  /** Of maps that are of a set which nobody can tell: it may be one that this node is in, so what was in force before stays. */
  readonly unclear: readonly ConfigFault[]
  readonly described: Described
}

/** Two sets of which neither is said more closely: it would hang on their names which one counts. */
function rivals(node: NodeName, layers: readonly ReadMap[]): readonly ConfigFault[] {
  return layers.flatMap((layer, index) => {
    const before = layers[index - 1]
    const entry = layer.config.find(({ key }) => key === selectorKey)
    if (entry === undefined || before?.selector === undefined || sizeOf(before) < sizeOf(layer)) return []
    return [{ map: layer.name, key: entry.at, line: entry.line, says: `${selectorKey}= takes ${node} in, as ${before.name} does, and neither asks for more labels: which of them counts, nobody can tell`, blocks: true }]
  })
}

function parseNode(
  node: NodeAsked, layers: readonly ReadMap[], { templates, broken, unclear, described }: Beside, instance: Instance | undefined,
): { readonly arranged: Arranged; readonly faults: readonly ConfigFault[] } {
  const faults: ConfigFault[] = [...layers.flatMap((layer) => layer.faults), ...rivals(node.name, layers), ...unclear]
  const config = layered(layers.length > 0 ? layers.map((layer) => layer.config) : unclear.length === 0 ? [unwritten] : [])
  const named = config.get('node_name')
  if (named !== undefined && filled(named.value, node) !== node.name) {
    faults.push({ map: named.map, key: named.at, line: named.line, says: `node_name= is not ${node.name}, whose configuration this is`, blocks: true })
  }
  const steps = stepsOf(config)
  faults.push(...steps.faults)
  const specs = new Map<string, MethodSpec>()
  /** Written, and with faults of their own. */
  const ill = new Set<string>()
  const used = new Set<string>()
  for (const name of new Set(layers.flatMap((layer) => [...layer.methods.keys()]))) {
    const holding = layers.filter((layer) => layer.methods.has(name))
    const own = [...layered(holding.map((layer) => layer.methods.get(name) ?? [])).values()]
    const place = { map: holding.at(-1)?.name ?? defaultName, at: `${methodPrefix}${name}` }
    for (const entry of own) if (namesTemplate(entry)) used.add(entry.value)
    const { spec, faults: wrong } = methodSpec(name, place, own, templates, node, described)
    faults.push(...wrong)
    if (spec === undefined) ill.add(name)
    else specs.set(name, spec)
  }
  faults.push(...[...used].flatMap((name) => broken.get(name) ?? []))
  const mapOf = (method: string): string => layers.findLast((layer) => layer.methods.has(method))?.name ?? defaultName
  const arranged = arrange(steps, builtIn(steps, specs, instance, described), ill, mapOf)
  return { arranged: arranged.arranged, faults: [...faults, ...arranged.faults] }
}
