// Programs for one device, asked the same one after the other with the machine as the judge: exit, effect, time.
import * as assert from 'uvu/assert'
import type { Machine } from './machine.ts'
import type { Parameters, Rack } from './rack.ts'

type Step = 'status on' | 'off' | 'off again' | 'status off' | 'on'

const steps = [
  ['status on', 'status', 0], ['off', 'off', 0], ['off again', 'off', 0], ['status off', 'status', 2], ['on', 'on', 0],
] as const satisfies readonly (readonly [Step, 'status' | 'off' | 'on', number])[]

/** Answers how long each step took. */
export async function sideBySide(rack: Rack, machine: Machine, programs: Readonly<Record<string, Parameters>>): Promise<(program: string, step: Step) => number> {
  const taken = new Map<string, number>()
  for (const [program, parameters] of Object.entries(programs)) {
    const boot = await machine.beats()
    for (const [step, action, exitCode] of steps) {
      const answer = await rack.time(program, action, parameters)
      assert.is(answer.exitCode, exitCode, `${program}, ${step}: ${answer.text}`)
      taken.set(`${program} ${step}`, answer.took)
      if (step === 'status on') await machine.mustBeatOn(boot)
      else if (step !== 'on') await machine.mustBeDead()
    }
    assert.is.not(await machine.beats(), boot, `${program}: the machine that was off has a new boot`)
    console.log(`${program.padEnd(18)} ${steps.map(([step]) => `${step} ${taken.get(`${program} ${step}`)} ms`).join(', ')}`)
  }
  return (program, step) => taken.get(`${program} ${step}`) ?? Number.NaN
}
