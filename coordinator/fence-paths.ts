// Which fence path each node has, kept true to the ConfigMaps and Secrets it is written in. A change is taken in a moment after it
// was seen, so that a dozen edited maps are one reading; only the nodes it concerns are read anew, and of many nodes only so
// many in one go: five thousand of them at once would be a third of a second in which nobody is heard.
import { sameAddresses } from '../core/address.ts'
import type { Method, Ms, NodeName } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { KubeObject } from './api.ts'
import { isDeepStrictEqual } from 'node:util'
import { isFenceConfigMap, isOfASet, readFenceConfigs, sentenceOf, textData, type ConfigFault, type ConfiguredMethod, type FenceConfigMap, type NodeFenceConfig, type NodeWords } from './fence-config.ts'
import type { AgentCatalogue } from './agent-catalogue.ts'
import { credentialsOf, instanceKey, type Claim } from './fence-config-instance.ts'
import { wordless } from './fence-config-node.ts'
import { beyondOutlet, type SecretLookup } from './fence-config-secret.ts'
import { keptName, type FencesKept } from './fence-kept.ts'

export interface FencePaths {
  /** Undefined: the configuration has changed since the core saw this method. */
  method(node: NodeName, method: Method): ConfiguredMethod | undefined
  /** What asks the same device by the same words, but for the outlet, of this and other nodes; it among them. */
  sharing(method: ConfiguredMethod): readonly { readonly node: NodeName; readonly method: ConfiguredMethod }[]
  configMap(object: KubeObject): void
  configMapGone(name: string): void
  secret(object: KubeObject): void
  secretGone(name: string): void
  /** A node appeared, or says something else of its instance or of itself: its path is worked out with the next reading. */
  nodeSeen(node: NodeName, providerID: string, words: NodeWords): void
  nodeGone(node: NodeName): void
  /** What its NodeRecord says of its addresses; empty: it is of another Node of this name, or says nothing. */
  recorded(node: NodeName, addresses: readonly string[]): void
  /** These are in force: what they name for the programs of clouds. */
  policies(inForce: readonly Policy[]): void
  readonly secrets: SecretLookup
  /** A program has said what it is: whatever waited for that is read. */
  learned(): void
  /** The leader says what it has not said yet, and keeps what must outlive it. Cheap when there is nothing. */
  settle(): void
  /** Nothing is read any more. */
  stop(): void
}

export interface FencePathsOptions {
  readonly clock: Clock
  readonly log: Log
  nodes(): Iterable<NodeName>
  /** Keys the digests; a secret of the cluster. */
  readonly salt: string
  changed(node: NodeName, config: NodeFenceConfig): void
  leads(): number | undefined
  readonly kept: FencesKept
  readonly catalogue: AgentCatalogue
  /** Everything has been read once: until then a leader does not know what need not be kept any more. */
  ready(): boolean
  /** All faults of the present text, while this replica leads: once a term, and whenever they change. `holds`: what is in force
   *  meanwhile. */
  faults(sentences: readonly string[], map: string, holds: string): void
}

const settleFor: Ms = 200
/** A few milliseconds of work. */
const nodesAtOnce = 50
const goOnAfter: Ms = 1
const mostNamed = 3
const ownPrefix = 'fence-config-'
const sharedMap = `${ownPrefix}default`
/** No node is called so. */
const everyNode = ''

type Faults = ReadonlyMap<string, string>

export function fencePaths(options: FencePathsOptions): FencePaths {
  const { clock } = options
  const maps = new Map<string, FenceConfigMap>()
  /** Names of those that are of a set of nodes. */
  const ofSets = new Set<string>()
  const secrets = new Map<string, ReadonlyMap<string, string>>()
  const configs = new Map<NodeName, NodeFenceConfig>()
  /** What the configuration of each node was made of when it had no faults that block. */
  const good = new Map<NodeName, readonly FenceConfigMap[]>()
  /** Sentences, and the ConfigMap of each, by the name of the node they concern, or of all. */
  const faults = new Map<string, Faults>()
  const claims = new Map<NodeName, string>()
  const claimants = new Map<string, Set<NodeName>>()
  const words = new Map<NodeName, NodeWords>()
  const addresses = new Map<NodeName, readonly string[]>()
  /** What is in force for them may have been filled with other addresses than those that count. */
  const moved = new Set<NodeName>()
  /** None where none of them names a Secret. */
  let policies: readonly Policy[] = []
  /** Whoever is seen again has nothing of his path, whatever he claims: it may have been forgotten at any moment since. */
  const left = new Set<NodeName>()
  let all = false
  const due = new Set<NodeName>()
  /** Their configuration names a program that has not said yet what it is. What was in force before stays so long. */
  const waiting = new Set<NodeName>()
  let unkept = true
  let logged = ''
  /** Faults, with the term in which they were said. */
  let told = ''
  let cancel: (() => void) | undefined
  let stopped = false
  const lookup: SecretLookup = ({ secret, key }) => secrets.get(secret)?.get(key)

  return {
    secrets: lookup,
    method(node, method) {
      const configured = configs.get(node)?.methods[method.name]
      return configured?.digest === method.digest ? configured : undefined
    },
    sharing(method) {
      const asked = JSON.stringify(beyondOutlet(method.parameters))
      return [...configs].flatMap(([node, { methods }]) => Object.values(methods)
        .filter((other) => other.device === method.device && other.agent === method.agent && JSON.stringify(beyondOutlet(other.parameters)) === asked)
        .map((other) => ({ node, method: other })))
    },
    configMap(object) {
      const { name } = object.metadata
      if (name === keptName) {
        options.kept.seen(object)
        return concernKept()
      }
      if (!isFenceConfigMap(name)) return
      const map = { name, data: textData(object) }
      const before = isShared(name)
      maps.set(name, map)
      if (isOfASet(map)) ofSets.add(name)
      else ofSets.delete(name)
      concern(name, before)
    },
    configMapGone(name) {
      if (name === keptName) {
        options.kept.gone()
        return concernKept()
      }
      const before = isShared(name)
      ofSets.delete(name)
      if (maps.delete(name)) concern(name, before)
    },
    secret(object) {
      secrets.set(object.metadata.name, new Map(Object.entries(textData(object)).map(([key, text]) => [key, decoded(text)])))
      concernAll()
    },
    secretGone(name) {
      if (secrets.delete(name)) concernAll()
    },
    nodeSeen(node, providerID, said) {
      claim(node, providerID)
      const same = isDeepStrictEqual(words.get(node), said)
      if (!same) words.set(node, said)
      if (left.delete(node) || !same) concernNode(node)
    },
    nodeGone(node) {
      left.add(node)
      concernNode(node)
    },
    recorded(node, said) {
      if (sameAddresses(addresses.get(node), said)) return
      if (said.length === 0) addresses.delete(node)
      else addresses.set(node, said)
      moved.add(node)
      concernNode(node)
    },
    policies(inForce) {
      const before = policies
      policies = inForce.some(({ cloudCredentials }) => cloudCredentials !== undefined) ? inForce : []
      if (!isDeepStrictEqual(policies.map(whose), before.map(whose))) concernAll()
    },
    learned() {
      for (const node of waiting) due.add(node)
      waiting.clear()
      arm(goOnAfter)
    },
    settle() {
      say()
      keep()
    },
    stop() {
      stopped = true
      cancel?.()
    },
  }

  /** Undefined: the node is gone, and nothing of it is of interest any more. Whoever names the same instance, before or now, is
   *  concerned too. */
  function claim(node: NodeName, providerID: string | undefined): void {
    const before = claims.get(node)
    if (before === providerID) return
    const [formerly, now] = [instanceKey(before ?? ''), instanceKey(providerID ?? '')]
    const former = claimants.get(formerly)
    former?.delete(node)
    if (former?.size === 0) claimants.delete(formerly)
    if (providerID === undefined) claims.delete(node)
    else {
      claims.set(node, providerID)
      due.add(node)
      if (providerID !== '') claimants.set(now, (claimants.get(now) ?? new Set()).add(node))
    }
    for (const twin of [...(former ?? []), ...(claimants.get(now) ?? [])]) due.add(twin)
    if (due.size > 0) arm(settleFor)
  }

  function claimOf(node: NodeName, known: ReadonlySet<NodeName>): Claim | undefined {
    const providerID = claims.get(node) ?? ''
    if (providerID === '') return undefined
    const credentials = credentialsOf(words.get(node)?.labels ?? {}, policies)
    return { providerID, twins: [...(claimants.get(instanceKey(providerID)) ?? [])].filter((other) => other !== node && known.has(other)).toSorted(), ...(credentials === undefined ? {} : { credentials }) }
  }

  function concernNode(node: NodeName): void {
    due.add(node)
    arm(settleFor)
  }

  /** A node's own map concerns that node; templates, the default, what is or was of a set, and Secrets concern all. */
  function concern(map: string, wasShared: boolean): void {
    if (wasShared || isShared(map)) return concernAll()
    concernNode(map.slice(ownPrefix.length))
  }

  function concernAll(): void {
    all = true
    arm(settleFor)
  }

  function concernKept(): void {
    unkept = true
    for (const node of options.kept.nodes()) if (!good.has(node)) due.add(node)
    if (due.size > 0) arm(settleFor)
  }

  function arm(span: Ms): void {
    if (cancel !== undefined || stopped) return
    cancel = clock.after(span, () => {
      cancel = undefined
      readSome()
    })
  }

  function readSome(): void {
    if (all) everybody()
    const some = [...due].slice(0, nodesAtOnce)
    for (const node of some) due.delete(node)
    const known = new Set(options.nodes())
    read(some, known)
    if (due.size > 0) return arm(goOnAfter)
    for (const node of configs.keys()) if (!known.has(node)) forget(node)
    unkept = true
    tell()
  }

  function everybody(): void {
    all = false
    note(everyNode, readFenceConfigs(shared(), lookup, options.salt).faults)
    for (const node of options.nodes()) due.add(node)
    for (const map of maps.keys()) if (map.startsWith(ownPrefix)) due.add(map.slice(ownPrefix.length))
  }

  /** Every one by what all share and its own map. A map of which there is no node, not yet or not any more, is read for its
   *  faults alone. */
  function read(names: readonly NodeName[], known: ReadonlySet<NodeName>): void {
    const own = names.flatMap((name) => maps.get(`${ownPrefix}${name}`) ?? [])
    let pending = false
    const from = readFenceConfigs([...new Set([...shared(), ...own])], lookup, options.salt, (agent) => {
      const said = options.catalogue.of(agent)
      pending ||= said === 'pending'
      return typeof said === 'string' ? undefined : said
    })
    for (const name of names) {
      const wrong = from.faults.filter((fault) => fault.map === `${ownPrefix}${name}`)
      if (!known.has(name)) {
        claim(name, undefined)
        words.delete(name)
        note(name, wrong)
        continue
      }
      const claimed = claimOf(name, known)
      pending = false
      const config = from.forNode(name, lastGood(name, claimed), claimed, wordsFor(name))
      if (pending) {
        waiting.add(name)
        continue
      }
      moved.delete(name)
      configs.set(name, config)
      if (config.path.faults.length === 0) good.set(name, from.sources(name, words.get(name)))
      else if (!config.outdated) good.delete(name)
      options.changed(name, config)
      note(name, [...wrong, ...config.faults])
    }
  }

  /** Our own memory, or what a leader before us kept. A ConfigMap that somebody deleted takes its last good text with it. */
  function lastGood(node: NodeName, claimed: Claim | undefined): NodeFenceConfig | undefined {
    const mine = good.get(node)
    const sources = mine ?? options.kept.of(node, maps)
    if (sources?.every(({ name }) => maps.has(name)) !== true) return undefined
    if (mine !== undefined && !moved.has(node)) return configs.get(node)
    // By the addresses of before it would cut off who has them now, and not this node.
    const before = readFenceConfigs(sources, lookup, options.salt).forNode(node, undefined, claimed, wordsFor(node))
    if (before.path.faults.length > 0) return undefined
    good.set(node, sources)
    return before
  }

  function wordsFor(node: NodeName): NodeWords {
    return { ...words.get(node) ?? wordless, addresses: addresses.get(node) }
  }

  function forget(node: NodeName): void {
    configs.delete(node)
    moved.delete(node)
    good.delete(node)
  }

  function keep(): void {
    if (!unkept || options.leads() === undefined || cancel !== undefined || !options.ready()) return
    const outdated = [...good].filter(([node]) => configs.get(node)?.outdated === true)
    unkept = !options.kept.keep(new Map(outdated), maps)
  }

  function shared(): FenceConfigMap[] {
    return [...maps.values()].filter(({ name }) => isShared(name))
  }

  function isShared(map: string): boolean {
    return map === sharedMap || !map.startsWith(ownPrefix) || ofSets.has(map)
  }

  function note(key: string, found: readonly ConfigFault[]): void {
    if (found.length === 0) faults.delete(key)
    else faults.set(key, new Map(found.map((fault) => [sentenceOf(fault), fault.map])))
  }

  function tell(): void {
    const sentences = sentencesNow()
    const text = sentences.join('\n')
    if (text !== logged) {
      logged = text
      if (sentences.length === 0) options.log.info({}, 'the fence configuration is without faults')
      else options.log.warn({ faults: sentences, holds: holding() }, 'the fence configuration has faults')
    }
    say()
  }

  function say(): void {
    const term = options.leads()
    const text = `${term} ${logged}`
    if (term === undefined || text === told) return
    told = text
    const [first, ...more] = sentencesNow()
    if (first === undefined) return
    const map = [...faults.values()].find((found) => found.has(first))?.get(first) ?? ''
    options.faults([first, ...more], map, holding())
  }

  function sentencesNow(): readonly string[] {
    return [...new Set([...faults.values()].flatMap((found) => [...found.keys()]))].toSorted()
  }

  function holding(): string {
    const blocked = [...configs].filter(([, config]) => config.path.faults.length > 0)
    const without = blocked.filter(([, { outdated }]) => !outdated).map(([node]) => node).toSorted()
    const last = blocked.length === without.length ? [] : ['the last good one stays in force']
    const none = without.length === 0 ? [] : [`there is no good one for ${named(without)}`]
    return [...last, ...none].join(', and ') || 'they keep no node from its fence path'
  }
}

/** All of a policy that a path hangs on. */
function whose({ name, priority, nodeLabels, cloudCredentials }: Policy): readonly unknown[] {
  return [name, priority, nodeLabels, cloudCredentials]
}

function named(nodes: readonly NodeName[]): string {
  return nodes.length > mostNamed ? `${nodes.slice(0, mostNamed).join(', ')} and ${nodes.length - mostNamed} more` : nodes.join(', ')
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}
