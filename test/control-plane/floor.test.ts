// What the product adds to what the control plane needs anyway, from the proof on: volumes released by hand at once, and by the product right after
// that, in one lab, and each pair compared by itself, so that the machine's mood divides out.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ms } from '../../core/model.ts'
import { startLab, type Lab } from './lab.ts'
import { startReplicas } from './lab-play.ts'
import { floor, quantile, recovery } from './lab-recovery.ts'

const test = suite('the floor of a real control plane')

const rounds = 5
/** What is claimed, and docs/benchmarks.md shows it. Here it is printed and not asserted: a machine that others use has its moods. */
const claimed = 1.5
/** What no mood of a machine explains: twice the claim, and something waits that need not. */
const most = 3

const median = (spans: readonly Ms[]): Ms => quantile(spans.toSorted((one, other) => one - other), 0.5)
const told = (spans: readonly Ms[]): string => spans.map((span) => (span / 1_000).toFixed(2)).join(', ')

async function inLab(play: (lab: Lab) => Promise<void>): Promise<void> {
  const lab = await startLab()
  try {
    await play(lab)
  } finally {
    await lab.stop()
  }
}

test('from the proof to the last volume released the product adds little to what a person needs who does everything at once', () => inLab(async (lab) => {
  await startReplicas(lab)
  const byHand: Ms[] = []
  const sinceProof: Ms[] = []
  for (let round = 0; round < rounds; round += 1) {
    byHand.push((await floor(lab)).released)
    const { released, steps } = await recovery(lab, 'power loss')
    assert.type(steps['proven'], 'number')
    sinceProof.push(released - (steps['proven'] ?? 0))
    console.log(`from the fault on: ${Object.entries(steps).filter(([, at]) => at <= released + 1_000).map(([what, at]) => `${what} ${(at / 1_000).toFixed(2)}`).join(', ')}; released ${(released / 1_000).toFixed(2)}`)
  }
  const ratios = sinceProof.map((span, round) => span / (byHand[round] ?? 0))
  const ratio = median(ratios)
  console.log(`floor ${told(byHand)} s; from the proof on ${told(sinceProof)} s; ratios ${ratios.map((one) => one.toFixed(2)).join(', ')}`)
  console.log(`ratio to the floor, from the proof on: ${ratio.toFixed(2)}, where ${claimed} is claimed; it fails above ${most}`)
  assert.ok(ratio <= most, `${ratio.toFixed(2)} is more than ${most}`)
}))

test.run()
