// The real control plane as the ground of a story.
import { machineClock as clock } from '../../edge/clock.ts'
import type { Ground } from '../stories/ground.ts'
import { findings, happened } from './lab-judge.ts'
import { incidents, ourTaints, until, type Play } from './lab-play.ts'

export function labGround(play: Play): Ground {
  const { lab, victim } = play
  return {
    world: lab.world, victim, isolate: lab.isolate,
    mute(node) {
      lab.devices.get(node)?.fault('refuse')
      return () => lab.devices.get(node)?.fault(undefined)
    },
    run: (span) => clock.wait(span), answered: (promise) => promise, until,
    incidents: async () => incidents(play),
    happened: (what) => happened(play, what),
    findings: () => findings(play),
    taints: () => ourTaints(lab),
  }
}
