// A failing schedule made smaller while it fails for the same judge: fewer troubles, then a smaller and a plainer cluster, then
// shorter troubles. What is left is what a person reads.
import type { Judge } from './judgement.ts'
import type { Scene, Schedule } from './schedule.ts'

export type Fails = (schedule: Schedule) => Promise<readonly Judge[]>

const mostTries = 100

/** What a cluster may do without. */
const parts = ['power', 'wants', 'second', 'gate', 'givesUp', 'cleansUp', 'bare', 'watchdog', 'apart', 'evicts', 'audited', 'dumps', 'shared', 'remedy'] as const satisfies readonly (keyof Scene)[]

export async function shrink(failing: Schedule, judge: Judge, fails: Fails): Promise<Schedule> {
  let best = failing
  let tries = 0
  for (let smaller = true; smaller && tries < mostTries;) {
    smaller = false
    for (const candidate of candidates(best)) {
      if (tries >= mostTries) break
      tries += 1
      if (!(await fails(candidate)).includes(judge)) continue
      best = candidate
      smaller = true
      break
    }
  }
  return best
}

function* candidates(schedule: Schedule): Generator<Schedule> {
  const { scene, troubles } = schedule
  for (const [index] of troubles.entries()) yield { ...schedule, troubles: troubles.toSpliced(index, 1) }
  if (scene.nodes > 3 && scene.bare !== `node-${scene.nodes}`) yield { ...schedule, scene: { ...scene, nodes: scene.nodes - 1 } }
  if (scene.replicas > 2) yield { ...schedule, scene: { ...scene, replicas: 2 } }
  for (const part of parts) {
    const { [part]: there, ...plainer } = scene
    if (there !== undefined) yield { ...schedule, scene: plainer }
  }
  for (const [index, trouble] of troubles.entries()) {
    if (trouble.span > 1_000) yield { ...schedule, troubles: troubles.with(index, { ...trouble, span: Math.round(trouble.span / 2) }) }
  }
}
