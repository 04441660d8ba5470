// Devices that lie about a node which is only cut off, with a second device in the level and with self-stop on the node alone, and a fence program that hangs where its parent's end does not reach it. Products
// were measured to fail at each; the record of a lie with nothing beside it is told in `twins.test.ts`.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { comesBack, findings, happened, nothingFreed } from './lab-judge.ts'
import { workNamespace } from './lab-objects.ts'
import { ended, keepLab, ourTaints, theIncident, times, transcript, until, workloadRuns, type Play } from './lab-play.ts'
import { openPowerControllers, type PowerControllers } from './power-controllers.ts'
import { environmentOf } from './process-environment.ts'
import { fenceAgents } from './replicas.ts'

const test = suite('devices that lie, on a real control plane')
const keeper = keepLab({ nodes: 6, zones: 3, policy: { restAfter: '10s', giveUp: 'stop', waitForPermit: true }, cutOff: 'runs on' })

const configOf = ({ victim }: Play): string => `/api/v1/namespaces/${usualValues.namespace}/configmaps/fence-config-${victim}`

/** What an operator writes of the victim's path; the answer puts back what stood there. */
async function configure(play: Play, data: Readonly<Record<string, string>>): Promise<() => Promise<void>> {
  const { lab: { api } } = play
  const before = await api.get<{ data: Record<string, string> }>(configOf(play))
  assert.ok(before.ok)
  assert.ok((await api.patch(configOf(play), 'merge', { data })).ok)
  const gone = Object.fromEntries(Object.keys(data).filter((key) => !(key in before.value.data)).map((key) => [key, null]))
  return async () => assert.ok((await api.patch(configOf(play), 'merge', { data: { ...gone, ...before.value.data } })).ok)
}

/** Each method of its path was asked since, and said on. */
async function audited({ lab, victim }: Play, methods: readonly string[]): Promise<void> {
  await until(`${methods.join(' and ')} of ${victim} are audited`, () => {
    const paths = lab.records().get(victim)?.paths ?? []
    return paths.map(({ method }) => method).toSorted().join() === methods.toSorted().join() && paths.every(({ state, identity }) => state === 'verified' && identity === 'proven')
  }, 120_000)
}

/** An honest controller beside the victim's own, of the same machine. */
async function besideIt(play: Play): Promise<{ readonly controllers: PowerControllers; readonly putBack: () => Promise<void> }> {
  const { lab, victim } = play
  const controllers = await openPowerControllers([victim], 200, 'second')
  const [machine, device] = [lab.world.nodes.get(victim)?.machine, lab.world.devices.get(`bmc-${victim}`)]
  assert.ok(machine && device)
  controllers.wire(victim, machine, device)
  const [secret, template, own] = controllers.objects(usualValues.namespace)
  assert.ok(secret && template && own)
  for (const [collection, object] of [['secrets', secret], ['configmaps', template]] as const) assert.ok((await lab.api.create(`/api/v1/namespaces/${usualValues.namespace}/${collection}`, object)).ok)
  const { data } = own as typeof own & { data: Readonly<Record<string, string>> } // a ConfigMap, as the controllers write it
  const putBack = await configure(play, { 'config.properties': `node_name=${victim}\npower_management=bmc second\n`, 'fence-method-second': data['fence-method-bmc'] ?? '' })
  return { controllers, putBack }
}

test('a device that calls a machine off which is only cut off, and a second one in its level: that one ends it, and nobody writes twice', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  const { controllers, putBack } = await besideIt(play)
  await audited(play, ['bmc', 'second'])
  lab.devices.get(victim)?.lie(true)
  const heal = lab.isolate(victim)
  await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 120_000)
  assert.equal([happened(play, 'machine lost its power').length, findings(play)], [1, []])
  lab.devices.get(victim)?.lie(false)
  heal()
  const incident = await ended(play, 300_000)
  console.log(`a liar and an honest one: ${times(play, incident)}`)
  assert.equal(incident.status.proof?.methods, ['bmc', 'second'])
  await comesBack(play, incident)
  await putBack()
  await audited(play, ['bmc'])
  await controllers.close()
})

/** It does what Redfish does; but while the file stands an order is left to a grandchild in a session of its own, which holds the pipe and hangs. */
function hanger(lab: Play['lab'], flag: string, pids: string): void {
  writeFileSync(join(lab.programs, 'hanging'), [
    '#!/bin/sh', 'asked=$(cat)', `if [ -e "${flag}" ] && printf '%s' "$asked" | grep -q '^action=off'; then`,
    `  setsid sh -c 'echo $$ >> "${pids}"; exec sleep 600' &`, '  wait', 'fi',
    `printf '%s\\n' "$asked" | exec node "${fenceAgents}/redfish/redfish.ts"`, '',
  ].join('\n'), { mode: 0o755 })
}

test('a fence program that hangs in a grandchild: both are ended at the deadline, it is tried again, and nothing of it strikes later', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  const [flag, pids] = [join(lab.programs, '../hangs'), join(lab.programs, '../grandchildren')]
  hanger(lab, flag, pids)
  const before = await lab.api.get<{ data: Record<string, string> }>(configOf(play))
  const putBack = await configure(play, { 'fence-method-bmc': `agent_name=hanging\ntimeout=5s\n${before.ok ? before.value.data['fence-method-bmc'] : ''}` })
  await until('its path is read anew', () => lab.records().get(victim)?.paths.every(({ at, state }) => state === 'verified' && Date.parse(at) > play.beganWall) === true, 120_000)
  writeFileSync(flag, '')
  lab.world.freeze(victim)
  const offs = () => theIncident(play)?.status.attempts.filter(({ action }) => action === 'off') ?? []
  await until('two orders came to nothing', () => offs().filter(({ result }) => result !== 'running').length >= 2, 120_000)
  const over = offs().filter(({ result }) => result !== 'running')
  assert.ok(over.every(({ result }) => result === 'unknown'), JSON.stringify(over))
  const grandchildren = readFileSync(pids, 'utf8').trim().split('\n').map(Number)
  assert.ok(grandchildren.length >= 2)
  const left = grandchildren.slice(0, over.length).filter((pid) => environmentOf(pid).some((one) => one.startsWith('HOLDFAST_ATTEMPT=')))
  assert.equal(left, [], 'none of them outlives its order')
  await nothingFreed(play)
  assert.is(happened(play, 'device ordered').length, 0)
  rmSync(flag)
  const incident = await ended(play, 300_000)
  console.log(`a grandchild that hangs: ${times(play, incident)}`)
  await comesBack(play, incident)
  await putBack()
})

/** What of the workload runs on the machine, whatever anybody says of it. */
const working = ({ lab, victim }: Play): number => [...lab.world.nodes.get(victim)?.runtime.containers.values() ?? []].filter(({ pod, process }) => pod.namespace === workNamespace && process.running()).length

// The last one: a path that was found to lie stays marked in its lab.
test('a device that calls a machine off which is only cut off, and nothing beside it but self-stop on the node: it has ended its workloads before anything of it runs elsewhere, and nobody writes twice', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  lab.devices.get(victim)?.lie(true)
  assert.ok(working(play) > 0)
  const heal = lab.isolate(victim)
  await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 180_000)
  await clock.wait(10_000)
  assert.equal([working(play), happened(play, 'machine lost its power').length, findings(play)], [0, 0, []])
  heal()
  await until('the proof is void', () => (theIncident(play)?.status.voided.length ?? 0) > 0, 120_000)
  lab.devices.get(victim)?.lie(false)
  const incident = await ended(play, 300_000)
  console.log(`a liar, and self-stop: ${times(play, incident)}`)
  assert.is(incident.status.outcome, 'Void', transcript(incident))
  assert.equal([findings(play), await ourTaints(lab)], [[], []])
})

test('the lab stops', async () => await keeper.stop())

test.run()
