import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { IncidentStatus, Moment, VolumeFate } from '../../core/incident.ts'
import { milestones } from '../../core/milestone.ts'
import { incident, proofRecord } from './world.ts'

const test = suite('milestone')

const at = (second: number): string => new Date(second * 1_000).toISOString()
const told = (...moments: readonly (readonly [number, string])[]): readonly Moment[] => moments.map(([second, what]) => ({ at: at(second), what, detail: '' }))
const status = (changes: Partial<IncidentStatus>): IncidentStatus => incident(changes).status
const volume = (name: string, fate: VolumeFate['fate']): VolumeFate => ({ attachment: name, volume: name, driver: 'd', fate })

const opened = status({ timeline: told([10, 'opened']) })
const proven = status({ proof: proofRecord(), timeline: told([10, 'opened'], [14, 'proven']) })

test('the first proof is told once, with how long after the opening it came; one that was made anew is not', () => {
  assert.equal(milestones(opened, proven), [{ until: 'proven', span: 4_000 }])
  assert.equal(milestones(proven, { ...proven, timeline: told([10, 'opened'], [14, 'proven'], [15, 'freed']) }), [])
  const voided = [{ proof: proofRecord(), at: '', evidence: '' }]
  assert.equal(milestones({ ...opened, voided }, { ...proven, voided }), [])
})

test('volumes count once the last of them is released', () => {
  const [half, all] = [['released', 'attached'], ['released', 'released']].map((fates) => ({
    ...proven, volumes: fates.map((fate, index) => volume(`pv-${index}`, fate === 'released' ? 'released' : 'attached')), timeline: told([10, 'opened'], [14, 'proven'], [16, 'volumes released'], ...(fates.includes('attached') ? [] : [[19, 'volumes released'] as const])),
  }))
  assert.ok(half && all)
  assert.equal([milestones(proven, half), milestones(half, all), milestones(all, all)], [[], [{ until: 'released', span: 9_000 }], []])
})

const ends = (outcome: IncidentStatus['outcome'] & string, first = at(10)) => milestones(proven, { ...proven, phase: 'Final', outcome, timeline: [{ at: first, what: 'opened', detail: '' }, ...told([50, 'closed'])] })

test('only what recovered is told of at its end, and nothing of a record whose times nobody can read', () => {
  assert.equal([ends('Recovered'), ends('Withdrawn'), ends('Recovered', 'once')], [[{ until: 'recovered', span: 40_000 }], [], []])
})

test.run()
