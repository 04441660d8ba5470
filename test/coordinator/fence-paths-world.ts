// One replica's fence paths, with a server that holds its ConfigMaps.
import { noCatalogue } from '../../coordinator/agent-catalogue.ts'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { fencesKept } from '../../coordinator/fence-kept.ts'
import { fencePaths, type FencePaths } from '../../coordinator/fence-paths.ts'
import type { FencePath, Method } from '../../core/model.ts'
import { silentLog } from '../../edge/log.ts'
import { admin, createApiServer, type ApiServer } from '../../sim/api-server/server.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'

export interface Small {
  readonly clock: VirtualClock
  readonly server: ApiServer
  readonly paths: FencePaths
  readonly nodes: Set<string>
  readonly inForce: Map<string, FencePath>
  readonly changed: string[]
  readonly told: { sentences: readonly string[]; map: string; holds: string }[]
  readonly logged: string[]
  term: number | undefined
}

export function small(...nodes: readonly string[]): Small {
  const clock = virtualClock()
  const chance = seededChance(3)
  return replica(clock, createApiServer({ clock, chance: () => chance.next() }), nodes)
}

/** Its watch is the test: what the server holds is brought by `kept`. */
export function replica(clock: VirtualClock, server: ApiServer, nodes: readonly string[], catalogue = noCatalogue): Small {
  const api = createApi({ clock, transport: server.transportFor(admin) })
  const on: Omit<Small, 'paths'> = { clock, server, nodes: new Set(nodes), inForce: new Map(), changed: [], told: [], logged: [], term: 3 }
  const note = (facts: { holds?: string }, message: string): void => void on.logged.push(facts.holds === undefined ? message : `${message}: ${facts.holds}`)
  const paths = fencePaths({
    catalogue, clock, log: { ...silentLog, info: note, warn: note }, salt: 'salt', nodes: () => on.nodes,
    changed(node, config) {
      on.inForce.set(node, config.path)
      on.changed.push(node)
    },
    leads: () => world.term, ready: () => true,
    kept: fencesKept({ api, clock, log: silentLog, namespace: 'default' }),
    faults: (sentences, map, holds) => on.told.push({ sentences, map, holds }),
  })
  const world: Small = { ...on, paths }
  return world
}

export const map = (name: string, data: Record<string, string>): KubeObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data } as KubeObject) // a ConfigMap has data
export const own = (node: string, plug = '1'): KubeObject => map(`fence-config-${node}`, {
  'config.properties': `node_name=${node}\npower_management=bmc-off\n`, 'fence-method-bmc-off': `template=fence-method-template-bmc\nip=10.2.0.1\nplug=${plug}\naction=off\n`,
})
export const template = (password = 'secret:bmc/password'): KubeObject => map('fence-method-template-bmc', { 'template.properties': `agent_name=redfish\nusername=admin\npassword=${password}\n` })
export const secret = (text: string): KubeObject => map('bmc', { password: Buffer.from(text).toString('base64') })
export const only = (path: FencePath | undefined): Method => path?.levels[0]?.[0] as Method // asserted by whoever uses it
