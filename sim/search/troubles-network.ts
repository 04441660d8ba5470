// Partitions of every shape, and bad weather.
import type { Weather } from '../network.ts'
import type { Cut } from '../world/levers.ts'
import { aNode, aReplica, type Ground, type Trouble, type TroubleKind } from './trouble.ts'

type Shape = (names: { readonly node: string; readonly zone: readonly string[]; readonly nodes: readonly string[]; readonly replica: string; readonly replicas: readonly string[] }) => Cut

const replicaPlanes = ['link', 'probe'] as const

const shapes: Readonly<Record<string, Shape>> = {
  'a node is cut off': ({ node }) => ({ from: [node], to: ['*'] }),
  'a node is not heard': ({ node }) => ({ from: [node], to: ['*'], oneWay: true }),
  'a node hears nothing': ({ node }) => ({ from: ['*'], to: [node], oneWay: true }),
  'a zone is cut off': ({ zone }) => ({ from: zone, to: ['*'] }),
  'a node loses the replicas': ({ node, replicas }) => ({ from: [node], to: replicas }),
  'a node loses the API server': ({ node }) => ({ from: [node], to: ['api'] }),
  'a node loses its peers': ({ node, nodes }) => ({ from: [node], to: nodes.filter((name) => name !== node) }),
  'a replica loses the nodes': ({ replica, nodes }) => ({ from: [replica], to: nodes, planes: replicaPlanes }),
  'a replica loses one node': ({ replica, node }) => ({ from: [replica], to: [node], planes: replicaPlanes }),
  'a replica is not heard by the nodes': ({ replica, nodes }) => ({ from: [replica], to: nodes, planes: replicaPlanes, oneWay: true }),
  'a replica loses the API server': ({ replica }) => ({ from: [replica], to: ['api'] }),
  'a replica loses its watches': ({ replica }) => ({ from: [replica], to: ['api'], planes: ['watch'] }),
  'a replica loses the devices': ({ replica }) => ({ from: [replica], to: ['*'], planes: ['device'] }),
  'the management network is down': ({ replicas }) => ({ from: replicas, to: ['*'], planes: ['device'] }),
  'the replicas lose each other': ({ replicas }) => ({ from: [replicas[0] ?? ''], to: replicas.slice(1) }),
  'whispers are swallowed': ({ node }) => ({ from: [node], to: ['*'], planes: ['whisper'] }),
}

function cut(shape: Shape): TroubleKind {
  return {
    class: 'network',
    draw: (chance, scene) => ({ on: aNode(chance, scene), how: aReplica(chance, scene) }),
    begin: (ground, trouble) => ground.on.world.partition(shape(names(ground, trouble))),
  }
}

/** A cut wants a node and a replica; the second stands in `how`. */
function names(ground: Ground, trouble: Trouble): Parameters<Shape>[0] {
  const { world } = ground.on
  const node = ground.node(trouble)
  const replica = ground.replica({ ...trouble, on: trouble.how ?? '0' }) ?? 0
  const zone = world.nodes.get(node)?.machine.settings.zone
  return {
    node, nodes: [...world.nodes.keys()], zone: [...world.nodes.values()].filter(({ machine }) => machine.settings.zone === zone).map(({ machine }) => machine.name),
    replica: world.replicas.host(replica).name, replicas: Array.from({ length: world.settings.replicas }, (_, number) => world.replicas.host(number).name),
  }
}

const weathers = { loss: { loss: 0.1 }, twice: { duplicate: 0.2 }, clogged: { clog: 0.2, clogFor: 1_500 }, slow: { delay: [50, 400] } } as const

/** By the network's own: what it was before the first of them, and what is in force now, the latest last. */
const skies = new WeakMap<Weather, { readonly clear: Weather; readonly spells: Set<Partial<Weather>> }>()

const weather: TroubleKind = {
  class: 'network', weight: 3,
  draw: (chance) => ({ on: '', how: chance.pick(Object.keys(weathers)) }),
  begin({ on: { world } }, { how }) {
    const now = world.network.weather
    const sky = skies.get(now) ?? { clear: { ...now }, spells: new Set() }
    skies.set(now, sky)
    const own: Partial<Weather> = { ...weathers[how as keyof typeof weathers] } // drawn from its keys
    const turns = (): unknown => Object.assign(now, sky.clear, ...sky.spells)
    sky.spells.add(own)
    turns()
    // They may overlap: what one found must not come back with its end.
    return () => {
      sky.spells.delete(own)
      turns()
    }
  },
}

export const networkTroubles: Readonly<Record<string, TroubleKind>> = {
  ...Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, cut(shape)])),
  'bad weather': weather,
}
