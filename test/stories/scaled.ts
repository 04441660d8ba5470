// A StatefulSet is scaled up and down while the node of one of its pods dies: no hand is needed.
import * as assert from 'uvu/assert'
import { allEnd, incidentOf, isLive, podsOf, scale, type Ground, type Story } from './ground.ts'

/** So many pods, all of them ready, and none on the dead node. */
function stands(on: Ground, replicas: number, notOn?: string): Promise<void> {
  return on.until(`${replicas} pods are ready${notOn === undefined ? '' : `, none on ${notOn}`}`, async () => {
    const pods = await podsOf(on, 'db')
    return pods.length === replicas && pods.every((pod) => isLive(pod) && pod.spec.nodeName !== notOn)
  }, 180_000)
}

async function nodeOf(on: Ground, pod: string): Promise<string> {
  return (await podsOf(on, 'db')).find(({ metadata }) => metadata.name === pod)?.spec.nodeName ?? ''
}

async function endsWell(on: Ground): Promise<void> {
  const ends = await allEnd(on, 600_000)
  assert.equal([ends.map(({ status }) => status.outcome), on.findings(), await on.taints()], [['Recovered'], [], []])
  await scale(on, 1)
  await stands(on, 1)
}

export const scaled: readonly Story[] = [
  {
    title: 'scaled up while the node of its first pod dies: all of them run elsewhere',
    async tell(on) {
      on.world.freeze(on.victim)
      await scale(on, 3)
      await stands(on, 3, on.victim)
      await endsWell(on)
    },
  },
  {
    title: 'scaled down while the node of its last pod dies: that one is freed, and not replaced; scaled up again, it is',
    async tell(on) {
      await scale(on, 3)
      await stands(on, 3)
      const dead = await nodeOf(on, 'db-2')
      on.world.freeze(dead)
      await scale(on, 1)
      await stands(on, 1, dead)
      assert.ok((await incidentOf(on, dead))?.status.pods.some(({ name, fate }) => name === 'db-2' && fate === 'freed'), 'freed by us, since its kubelet cannot')
      await scale(on, 3)
      await stands(on, 3, dead)
      await endsWell(on)
    },
  },
  {
    title: 'scaled to nothing and up again while an order is under way',
    async tell(on) {
      on.world.freeze(on.victim)
      await on.until('its device is asked', () => on.happened('device ordered').length > 0, 60_000)
      await scale(on, 0)
      await on.run(2_000)
      await scale(on, 2)
      await stands(on, 2, on.victim)
      await endsWell(on)
    },
  },
]
