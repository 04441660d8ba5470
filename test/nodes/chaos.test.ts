// Random trouble from a seed: `npm run test:nodes -- --chaos 60m --seed S`. Whatever comes, nobody writes beside another, nobody is
// cut off without cause, and everything ends.
import { env } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runChaos, unrecorded, written, type Run } from './chaos.ts'
import { say } from './room.ts'
import { chaosVariable, type ChaosAsked } from './share.ts'
import { startStage, type Stage } from './stage.ts'
import { logFile, volumes } from './workload.ts'

const test = suite('chaos')
const { minutes, seed } = JSON.parse(env[chaosVariable] ?? '') as ChaosAsked // written by run.ts alone
const told = (counts: ReadonlyMap<string, number>): string => [...counts].map(([what, count]) => `${what} ${count}`).join(', ')
let stage: Stage
let run: Run

test('the stage is set', async () => {
  stage = await startStage(say)
})

test('the trouble comes and goes, and everything ends', async () => {
  run = await runChaos(stage, { seed, span: minutes * 60_000, pause: [4_000, 40_000] })
  const outcomes = new Map<string, number>()
  for (const { status: { outcome = 'open' } } of run.incidents) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  const sum = [...run.faults.values()].reduce((one, other) => one + other, 0)
  say(`chaos, seed ${seed}, ${minutes} min: ${sum} faults (${told(run.faults)}), ${run.deaths} boots ended, incidents: ${told(outcomes) || 'none'}, ${run.violations.length} violations`)
  for (const violation of run.violations) say(violation)
  if (run.violations.length > 0) console.log(run.log.join('\n'))
  assert.is(run.violations.length, 0)
})

test('there was a fault a minute or more, and a true death in three', () => {
  const sum = [...run.faults.values()].reduce((one, other) => one + other, 0)
  assert.ok(sum >= minutes, `${sum} faults`)
  assert.ok(run.deaths >= Math.floor(minutes / 3), `${run.deaths} boots ended`)
})

test('a second writer, planted by hand, is found', async () => {
  const [volume = ''] = volumes
  const writer = stage.turns(volume).at(-1)
  const other = [...stage.cluster.machines.values()].find(({ name }) => name !== writer?.node)
  // From another machine, and by the same way as any writer's.
  const line = `$(cut -d' ' -f1 /proc/uptime) ${other?.name} ${other?.bootId()} planted`
  await other?.run(['bash', '-c', `for n in 1 2 3; do echo "${line}" >> /san/${volume}/${logFile}; sleep 0.3; done`])
  assert.match(written(stage).join('\n'), new RegExp(`^two writers: ${volume}: `))
})

test('a machine ordered off by nobody, planted by hand, is found', async () => {
  const since = Date.now()
  const [[name, controller] = []] = stage.management.of
  controller?.order('ForceOff')
  // Looked at once: cut off by other hands it will have an incident of its own.
  assert.match(unrecorded(stage, await stage.incidents(), since).join('\n'), new RegExp(`^restraint: ${name} was ordered off at `))
})

test('the stage is left', async () => await stage.stop())

test.run()
