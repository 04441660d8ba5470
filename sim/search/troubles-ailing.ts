// Nodes that run, and are not well: what a remedy is there for. It lasts for longer than a remedy waits, since one that is over sooner has nothing done.
import { condition, fullDisk, remedyName, remedyOf } from './remedies.ts'
import { aNode, insist, type Ground, type TroubleKind } from './trouble.ts'

type World = Ground['on']['world']

const longEnough = [[440_000, 680_000]] as const
const remediesPath = '/apis/holdfast.dev/v1alpha1/noderemedies'
/** As a node problem detector has it. */
const postedEvery = 60_000

const wanted = ({ remedy }: { readonly remedy?: string }): boolean => remedy !== undefined

/** On one node, or on several: a log that fills every disk. Who boots has an empty one, or has not. */
const disksFill: TroubleKind = {
  class: 'ailment', weight: 2, spans: longEnough, fits: wanted,
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: `${chance.pick([1, 1, 1, 2, 3, 7])} ${chance.pick(['until they boot', 'for good'])}` }),
  begin(ground, trouble) {
    const { world } = ground.on
    const [count, ...until] = (trouble.how ?? '').split(' ')
    const first = ground.node(trouble)
    const names = [first, ...[...world.nodes.keys()].filter((name) => name !== first)].slice(0, Number(count))
    let over = false
    const empty = (name: string) => delete world.nodes.get(name)?.faults.vitals
    for (const name of names) {
      const node = world.nodes.get(name)
      if (node === undefined) continue
      node.faults.vitals = { disk: fullDisk }
      world.truth.note('node ails', { node: name, of: 'disk' })
      node.machine.atBoot(() => void (over || until.join(' ') === 'for good' || empty(name)))
    }
    return () => {
      if (over) return
      over = true
      for (const name of names) empty(name)
    }
  },
}

function post(world: World, node: string, status: 'True' | 'False'): Promise<boolean> {
  const at = new Date(world.clock.wall()).toISOString()
  return world.api.patch(`/api/v1/nodes/${node}/status`, 'strategic', { status: { conditions: [{ type: condition, status, lastHeartbeatTime: at }] } }).then((answer) => answer.ok || answer.error.kind === 'notFound')
}

/** Posted once, it outlives whoever posted it; posted again and again, as long as the machine runs. */
const conditionPosted: TroubleKind = {
  class: 'ailment', spans: longEnough, fits: wanted,
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(['again and again', 'once']) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const node = ground.node(trouble)
    let over = false
    const say = (): void => {
      if (over) return
      const machine = world.nodes.get(node)?.machine
      if (machine?.state() === 'running' && !machine.frozen()) {
        world.truth.note('node ails', { node, of: 'condition' })
        void post(world, node, 'True')
      }
      if (trouble.how !== 'once') world.clock.after(postedEvery, say)
    }
    say()
    return () => {
      if (over) return
      over = true
      void insist(world, () => post(world, node, 'False'))
    }
  },
}

const remediesRemoved: TroubleKind = {
  class: 'people', fits: wanted,
  draw: () => ({ on: '' }),
  begin({ on: { world } }) {
    const there = (world.server?.peek('noderemedies.holdfast.dev') ?? []).find(({ metadata }) => metadata.name === remedyName)
    if (there === undefined) return undefined
    const { spec } = there as typeof there & { readonly spec: { readonly remedy: 'tell' | 'fence' } } // a NodeRemedy
    void world.api.remove(`${remediesPath}/${remedyName}`)
    world.truth.note('remedies removed')
    let over = false
    return () => {
      if (over) return
      over = true
      void insist(world, async () => {
        const made = await world.api.create(remediesPath, remedyOf(spec.remedy))
        return made.ok || made.error.kind === 'conflict'
      })
    }
  },
}

export const ailingTroubles: Readonly<Record<string, TroubleKind>> = {
  'disks fill up': disksFill,
  'a node problem is posted': conditionPosted,
  'the remedies are taken away': remediesRemoved,
}
