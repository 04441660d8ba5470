// The one address of the embedded world: the leading replica's page, and the levers that a person may pull. The levers are the
// world's, not the product's, and only a page that came from here may pull them: another site's script cannot set the header
// without asking first, and a name that was made to point here does not pass for ours.
import type http from 'node:http'
import type { Ms } from '../core/model.ts'
import { serveHealth } from '../coordinator/health.ts'
import type { Page } from '../coordinator/page.ts'
import type { Lever, PodLine } from '../coordinator/page-state.ts'
import { silentLog } from '../edge/log.ts'
import type { PodObject } from './objects.ts'
import type { World } from './world.ts'

export interface Front {
  readonly address: string
  /** What the replicas' pages show beside what the replicas know. Without a node: levers of the whole. */
  readonly extras: { pods(node: string): readonly PodLine[] | undefined; levers(node?: string): readonly Lever[] }
  close(): Promise<void>
}

export interface FrontOptions {
  readonly world: World
  /** Of the replica that leads, or else of one that runs. */
  page(): Page | undefined
  /** Of the same, for Prometheus. */
  metrics(): string
  /** The number of the replica that leads. */
  leader(): number | undefined
}

/** The levers of the whole are pulled under this name. */
const whole = 'replicas'
/** As long as a pod takes that is started anew. */
const replicaBackAfter: Ms = 5_000

export async function openFront({ world, page, metrics, leader }: FrontOptions): Promise<Front> {
  const levers = leversOf(world, leader)
  const health = await serveHealth({ address: '127.0.0.1:0', live: {}, ready: {}, metrics, log: silentLog })
  health.route('/', (request, response, url) => {
    const shown = page()
    if (shown === undefined) return say(response, 503, 'no replica runs yet\n')
    return shown.handle(request, response, url)
  })
  health.route('/world/', (request, response, url) => {
    const refused = stranger(request, health.address)
    if (refused !== undefined) return say(response, 403, `${refused}\n`)
    const [, , node = '', name = ''] = url.pathname.split('/')
    const lever = levers.of(node).find((one) => one.name === name)
    if (lever === undefined) return say(response, 409, `${node} has no lever ${name} now\n`)
    levers.pull(node, name)
    say(response, 200, `${lever.label}: done\n`)
  })
  return {
    address: `http://${health.address}/`,
    extras: { pods: podLines(world), levers: (node = whole) => levers.of(node) },
    close: () => health.close(),
  }
}

function stranger(request: http.IncomingMessage, address: string): string | undefined {
  if (request.method !== 'POST') return 'a lever is pulled by POST'
  const port = address.slice(address.lastIndexOf(':'))
  const ours = [`127.0.0.1${port}`, `localhost${port}`]
  if (!ours.includes(request.headers.host ?? '')) return 'another name than this world\'s'
  const { origin } = request.headers
  if (origin !== undefined && !ours.some((host) => origin === `http://${host}`)) return 'another site\'s page'
  return request.headers['x-holdfast-world'] === 'lever' ? undefined : 'not from the page'
}

function say(response: http.ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store' })
  response.end(text)
}

function leversOf(world: World, leader: () => number | undefined): { of(node: string): readonly Lever[]; pull(node: string, name: string): void } {
  const cut = new Map<string, () => void>()
  return {
    of(node) {
      if (node === whole) return leader() === undefined ? [] : [{ name: 'kill-leader', label: 'Kill the leader' }]
      const machine = world.nodes.get(node)?.machine
      if (machine === undefined) return []
      const power = machine.state() === 'off' ? { name: 'power', label: 'Press power button' } : { name: 'cut-power', label: 'Cut power' }
      const kernel = machine.state() !== 'running' ? undefined : machine.frozen() ? { name: 'thaw', label: 'Thaw' } : { name: 'freeze', label: 'Freeze' }
      const network = cut.has(node) ? { name: 'heal', label: 'Heal network' } : { name: 'cut-network', label: 'Cut network' }
      return [power, ...(kernel === undefined ? [] : [kernel]), network]
    },
    pull(node, name) {
      switch (name) {
        case 'kill-leader': {
          const number = leader()
          if (number === undefined) return
          world.killReplica(number)
          return void world.clock.after(replicaBackAfter, () => world.startReplica(number))
        }
        case 'cut-power': return world.cutPower(node)
        case 'power': return world.pressPowerButton(node)
        case 'freeze': return world.freeze(node)
        case 'thaw': return world.thaw(node)
        case 'cut-network': return void cut.set(node, world.isolate(node))
        case 'heal':
          cut.get(node)?.()
          cut.delete(node)
      }
    },
  }
}

/** Looked up in the server itself: nobody else pays for what a person looks at. */
function podLines(world: World): (node: string) => readonly PodLine[] | undefined {
  let at = -Infinity
  let all: readonly PodObject[] = []
  return (node) => {
    if (world.server === undefined) return undefined
    if (world.clock.now() - at > 100) {
      all = world.server.peek('pods') as readonly PodObject[] // what it keeps there are pods
      at = world.clock.now()
    }
    return all.filter(({ spec }) => spec.nodeName === node).map(({ metadata, spec, status }) => ({
      name: `${metadata.namespace}/${metadata.name}`, phase: status?.phase ?? 'Pending', terminating: metadata.deletionTimestamp !== undefined,
      volumes: (spec.volumes ?? []).some((volume) => volume.persistentVolumeClaim !== undefined),
    })).toSorted((one, other) => one.name.localeCompare(other.name))
  }
}
