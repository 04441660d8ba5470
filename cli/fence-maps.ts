// What is wrong with the fence ConfigMaps, found by the coordinator's own reader, and what is in force of them meanwhile, by what the
// leader keeps. Secrets are not read here: whether one is missing the audit of its path tells.
import { isIsolation } from '../core/isolation.ts'
import type { FencePath } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import { readFenceConfigs, sentenceOf, type FenceConfigMap } from '../coordinator/fence-config.ts'
import { credentialsOf, instanceKey, type Claim } from '../coordinator/fence-config-instance.ts'
import type { Dumps } from '../coordinator/fence-config-steps.ts'
import { keptKey, keptName, unpack } from '../coordinator/fence-kept.ts'
import { wordsOf, type KeptNode } from '../coordinator/kubernetes.ts'

export interface FenceFaults {
  readonly sentences: readonly string[]
  /** Nodes whose present text cannot be in force: those of which the last good one is, and those that have none. */
  readonly outdated: readonly string[]
  readonly without: readonly string[]
}

export function fenceFaults(maps: readonly FenceConfigMap[], nodes: readonly KeptNode[], policies: readonly Policy[]): FenceFaults {
  const present = new Map(maps.map((map) => [map.name, map]))
  const kept = unpack(present.get(keptName)?.data[keptKey] ?? '')
  const read = readFenceConfigs(maps, () => '', '')
  const claims = claimsOf(nodes, policies)
  const sentences = new Set(read.faults.map(sentenceOf))
  const outdated: string[] = []
  const without: string[] = []
  for (const node of nodes) {
    const { name } = node.metadata
    const { path, faults } = read.forNode(name, undefined, claims(name), wordsOf(node))
    for (const fault of faults) sentences.add(sentenceOf(fault))
    if (path.faults.length > 0) (kept.of(name, present)?.every((map) => present.has(map.name)) === true ? outdated : without).push(name)
  }
  return { sentences: [...sentences].toSorted(), outdated, without }
}

/** Which ConfigMap says the last word of how many nodes: several may be laid over one another. */
export function saidBy(maps: readonly FenceConfigMap[], nodes: readonly KeptNode[]): readonly string[] {
  const read = readFenceConfigs(maps, () => '', '')
  const last = nodes.map((node) => {
    const { name } = node.metadata
    const map = read.layers(name, wordsOf(node)).at(-1)
    return map === undefined ? 'no ConfigMap' : map === `fence-config-${name}` ? 'its own ConfigMap' : map
  })
  return [...Map.groupBy(last, (map) => map)].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([map, those]) => `${those.length} by ${map}`)
}

/** How each node's crash kernel is waited for. */
export function dumpsOf(maps: readonly FenceConfigMap[], nodes: readonly KeptNode[], policies: readonly Policy[]): ReadonlyMap<string, Dumps> {
  return pathsOf(maps, nodes, policies)
}

/** Nodes that a single device can prove off: if it lies, nothing else says otherwise. */
export function onOneDevice(maps: readonly FenceConfigMap[], nodes: readonly KeptNode[], policies: readonly Policy[]): ReadonlySet<string> {
  const alone = [...pathsOf(maps, nodes, policies)].filter(([, { levels }]) => levels.some((level) => level.length > 0 && !isIsolation(level) && new Set(level.map(({ device }) => device)).size === 1))
  return new Set(alone.map(([node]) => node))
}

function pathsOf(maps: readonly FenceConfigMap[], nodes: readonly KeptNode[], policies: readonly Policy[]): ReadonlyMap<string, FencePath> {
  const read = readFenceConfigs(maps, () => '', '')
  const claims = claimsOf(nodes, policies)
  return new Map(nodes.map((node) => [node.metadata.name, read.forNode(node.metadata.name, undefined, claims(node.metadata.name), wordsOf(node)).path]))
}

/** What each node says of its instance, and what its policy names for it. */
export function claimsOf(nodes: readonly KeptNode[], policies: readonly Policy[]): (node: string) => Claim | undefined {
  const known = new Map(nodes.map((node) => [node.metadata.name, node]))
  const claimants = Map.groupBy(nodes, ({ providerID = '' }) => instanceKey(providerID))
  return (name) => {
    const { providerID = '', metadata } = known.get(name) ?? {}
    if (providerID === '') return undefined
    const credentials = credentialsOf(metadata?.labels ?? {}, policies)
    const twins = (claimants.get(instanceKey(providerID)) ?? []).map((other) => other.metadata.name).filter((other) => other !== name)
    return { providerID, twins, ...(credentials === undefined ? {} : { credentials }) }
  }
}
