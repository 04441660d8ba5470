// Which fence path each node has, kept true to the ConfigMaps and Secrets it is written in. A change is taken in for all
// nodes at once, a moment after it was seen, so that a dozen edited maps are one reading.
import type { Method, Ms, NodeName } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { KubeObject } from './api.ts'
import { isFenceConfigMap, readFenceConfigs, sentenceOf, type ConfiguredMethod, type FenceConfigMap, type NodeFenceConfig } from './fence-config.ts'
import type { SecretLookup } from './fence-config-secret.ts'

export interface FencePaths {
  /** Undefined: the configuration has changed since the core saw this method. */
  method(node: NodeName, method: Method): ConfiguredMethod | undefined
  configMap(object: KubeObject): void
  configMapGone(name: string): void
  secret(object: KubeObject): void
  secretGone(name: string): void
  /** A node appeared, or its name is needed: its path is worked out with the next reading. */
  refresh(): void
  readonly secrets: SecretLookup
}

export interface FencePathsOptions {
  readonly clock: Clock
  readonly log: Log
  nodes(): Iterable<NodeName>
  /** Keys the digests; a secret of the cluster. */
  readonly salt: string
  changed(node: NodeName, config: NodeFenceConfig): void
  /** All faults of the present text, once, whenever they change. */
  faults(sentences: readonly string[], map: string): void
}

const settleFor: Ms = 200

export function fencePaths(options: FencePathsOptions): FencePaths {
  const { clock } = options
  const maps = new Map<string, FenceConfigMap>()
  const secrets = new Map<string, ReadonlyMap<string, string>>()
  const configs = new Map<NodeName, NodeFenceConfig>()
  let told = ''
  let waiting = false
  const lookup: SecretLookup = ({ secret, key }) => secrets.get(secret)?.get(key)

  return {
    secrets: lookup,
    method(node, method) {
      const configured = configs.get(node)?.methods[method.name]
      return configured?.digest === method.digest ? configured : undefined
    },
    configMap(object) {
      const { name } = object.metadata
      if (!isFenceConfigMap(name)) return
      maps.set(name, { name, data: textData(object) })
      refresh()
    },
    configMapGone(name) {
      if (maps.delete(name)) refresh()
    },
    secret(object) {
      secrets.set(object.metadata.name, new Map(Object.entries(textData(object)).map(([key, text]) => [key, decoded(text)])))
      refresh()
    },
    secretGone(name) {
      if (secrets.delete(name)) refresh()
    },
    refresh,
  }

  function refresh(): void {
    if (waiting) return
    waiting = true
    clock.after(settleFor, () => {
      waiting = false
      readAll()
    })
  }

  function readAll(): void {
    const read = readFenceConfigs([...maps.values()], lookup, options.salt)
    const faults = new Map<string, string>(read.faults.map((fault) => [sentenceOf(fault), fault.map]))
    for (const node of options.nodes()) {
      const config = read.forNode(node, configs.get(node))
      configs.set(node, config)
      options.changed(node, config)
      for (const fault of config.faults) faults.set(sentenceOf(fault), fault.map)
    }
    tell(faults)
  }

  function tell(faults: ReadonlyMap<string, string>): void {
    const sentences = [...faults.keys()].toSorted()
    const text = sentences.join('\n')
    if (text === told) return
    told = text
    if (sentences.length === 0) options.log.info({}, 'the fence configuration is without faults')
    else options.log.warn({ faults: sentences }, 'the fence configuration has faults; the last good one stays in force')
    if (sentences.length > 0) options.faults(sentences, faults.get(sentences[0] ?? '') ?? '')
  }
}

/** Only text is configuration; what else stands there is not read. */
function textData(object: KubeObject): Readonly<Record<string, string>> {
  const { data } = object as KubeObject & { data?: Record<string, unknown> } // ConfigMaps and Secrets both have it, or leave it out
  return Object.fromEntries(Object.entries(data ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}
