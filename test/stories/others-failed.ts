// Where today's products were measured to fail: an answer that comes before the power has dropped, a partition that heals while an off is
// under way, one node's error beside another's death, a machine that is only frozen.
import * as assert from 'uvu/assert'
import type { Ms } from '../../core/model.ts'
import { allEnd, incidentOf, isLive, podsOf, type Ground, type Story } from './ground.ts'

/** From the order to the power's drop; it is taken at once. */
function slow({ world }: Ground, node: string, off: Ms): void {
  const device = world.devices.get(`bmc-${node}`)
  if (device === undefined) throw new Error(`${node} has no device`)
  device.timing.off = off
}

const quarantine = 'holdfast.dev/quarantine'

/** Looked at again and again: which pods are bound to the victim while it is under quarantine, beside those that were there when it began, and what was
 *  mounted on its machine still when it was over of those that are bound to it no more. */
async function underQuarantine(on: Ground) {
  const { victim, world } = on
  const bound = async () => [...await podsOf(on, 'db'), ...await podsOf(on, 'web')].filter(({ spec }) => spec.nodeName === victim).map(({ metadata }) => metadata.uid)
  const first = await bound()
  const [sent, left] = [new Set<string>(), new Set<string>()]
  let there: ReadonlySet<string> | undefined
  let liftedAt: Ms | undefined
  return {
    sent, left, liftedAt: () => liftedAt,
    async look(): Promise<void> {
      // In this order: what is bound when the quarantine still stands afterwards was bound under it.
      const now = await bound()
      const stands = (await on.taints()).includes(`${victim} ${quarantine}`)
      if (stands && there === undefined) there = new Set(await bound())
      else if (stands) for (const uid of now) if (there?.has(uid) !== true) sent.add(uid)
      if (stands || there === undefined || liftedAt !== undefined) return
      liftedAt = world.clock.now()
      const gone = first.filter((uid) => !now.includes(uid))
      for (const { path } of world.nodes.get(victim)?.machine.mounts.values() ?? []) if (gone.some((uid) => path.includes(uid))) left.add(path)
    },
  }
}

const runsElsewhere = (on: Ground) => on.until('the workload runs elsewhere', async () => (await podsOf(on, 'db')).some((pod) => isLive(pod) && pod.spec.nodeName !== on.victim), 120_000)

export const othersFailed: readonly Story[] = [
  {
    title: 'a device that takes the order and drops the power five seconds later: nothing is released before it has',
    async tell(on) {
      slow(on, on.victim, 5_000)
      const heal = on.isolate(on.victim)
      await runsElsewhere(on)
      const [offAt] = on.happened('machine lost its power').map(({ at }) => at)
      const [releasedAt] = on.happened('volume released').map(({ at }) => at)
      assert.ok(offAt !== undefined && releasedAt !== undefined && releasedAt > offAt, `off at ${offAt}, released at ${releasedAt}`)
      heal()
      const [incident] = await allEnd(on, 300_000)
      assert.equal([incident?.status.proof?.kind, incident?.status.outcome, on.findings()], ['off', 'Recovered', []])
    },
  },
  {
    title: 'a partition that heals while an off is under way for fifteen seconds: the node ends on, nothing lands on it later, and nothing was sent to it before it was clean',
    async tell(on) {
      slow(on, on.victim, 15_000)
      const { look, sent, left, liftedAt } = await underQuarantine(on)
      const heal = on.isolate(on.victim)
      await on.until('its device is asked', () => on.happened('device ordered').length > 0, 60_000)
      await on.run(3_000)
      heal()
      await on.until('its power drops', async () => {
        await look()
        return on.happened('machine lost its power').length > 0
      }, 60_000)
      assert.ok((await on.taints()).includes(`${on.victim} ${quarantine}`), 'heard again, it is under quarantine still')
      await on.until('it is over', async () => {
        await look()
        return (await on.incidents()).every(({ status }) => status.phase === 'Final')
      }, 600_000)
      // Far beyond what any order that was given may take.
      await on.run(45_000)
      const [offs, boots] = [on.happened('machine lost its power'), on.happened('machine booted')]
      assert.equal([offs.length, boots.length, on.world.nodes.get(on.victim)?.machine.state()], [1, 1, 'running'])
      assert.ok((liftedAt() ?? 0) > (boots[0]?.at ?? Infinity), 'the quarantine went in the boot that followed')
      assert.equal([[...sent], [...left]], [[], []])
      assert.equal([on.findings(), await on.taints()], [[], []])
    },
  },
  {
    title: 'a node whose device does nothing keeps no other one waiting',
    async tell(on) {
      const { world, victim } = on
      const device = world.devices.get(`bmc-${victim}`)
      if (device === undefined) throw new Error(`${victim} has no device`)
      const hosts = new Set((await podsOf(on, 'web')).map(({ spec }) => spec.nodeName))
      const second = [...world.nodes.keys()].find((name) => name !== victim && !hosts.has(name)) ?? ''
      device.fault = { does: 'ignore' }
      world.freeze(victim)
      await on.until('an order to it came to nothing', async () => (await incidentOf(on, victim))?.status.attempts.some(({ result }) => result === 'failed' || result === 'unknown') === true, 120_000)
      world.freeze(second)
      await on.until('the other one is proven', async () => (await incidentOf(on, second))?.status.proof?.kind === 'off', 120_000)
      assert.is((await incidentOf(on, victim))?.status.proof, undefined)
      device.fault = undefined
      const ends = await allEnd(on, 600_000)
      assert.equal([ends.map(({ status }) => status.outcome), on.findings(), await on.taints()], [['Recovered', 'Recovered'], [], []])
    },
  },
  {
    title: 'a machine that is only frozen, and whose device does not answer: held until it thaws, and nothing of it was freed',
    async tell(on) {
      const before = (await podsOf(on, 'db')).map(({ metadata }) => metadata.uid)
      const speaks = on.mute(on.victim)
      on.world.freeze(on.victim)
      await on.until('it is held', async () => ((await incidentOf(on, on.victim))?.status.holds.length ?? 0) > 0, 60_000)
      await on.run(15_000)
      on.world.thaw(on.victim)
      speaks()
      const [incident] = await allEnd(on, 300_000)
      assert.equal([incident?.status.outcome, (await podsOf(on, 'db')).map(({ metadata }) => metadata.uid)], ['Withdrawn', before])
      assert.equal([on.happened('machine lost its power').length, on.happened('volume released').length, on.findings(), await on.taints()], [0, 0, [], []])
    },
  },
]
