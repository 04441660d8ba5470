// A node that comes back with what nobody else would end: a staging mount that kubelet has forgotten, whose server is dead, so that whoever looks at it hangs. It hangs no
// agent; and where the installation and the policy want it, the agent lets go of it by itself.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { say } from './room.ts'
import { ourTaint, startStage, type Stage } from './stage.ts'
import { begin, comesBack, ended, holding, movedAway, tell, type Story } from './story.ts'
import { driver } from './workload.ts'

const test = suite('clean up')
let stage: Stage

const within = 120_000
const watchedFor = 20_000

test('the stage is set', async () => {
  stage = await startStage(say, { values: { ...usualValues, cleanUp: 'on' } })
})

const mount = `/var/lib/kubelet/plugins/kubernetes.io/csi/${driver}/${'ab'.repeat(32)}/globalmount`

/** Before kubelet runs: FUSE of which nobody answers anything. Below a pod's folder it would hang kubelet itself, and with that the start of the agent. */
function deadServer({ machine }: Story): void {
  writeFileSync(join(machine.disk, 'etc/rc.local'), `mkdir -p ${mount}
(exec 3<>/dev/fuse; mount --internal-only -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 deaf ${mount}; exec sleep infinity) &
echo $! > /run/deaf.pid
sleep 1
`)
}

const isMounted = async ({ machine }: Story): Promise<boolean> => (await machine.run(['cat', '/proc/1/mountinfo'])).includes(` ${mount} `)

async function backWith(): Promise<Story> {
  const story = await begin(stage)
  deadServer(story)
  await story.machine.powerOff()
  await movedAway(story)
  return story
}

test('by the usual policy it stays, and with it the quarantine, which says which mount it is and since when; its agent is heard all the while', async () => {
  const story = await backWith()
  let why = ''
  await until('it is held for what is left on it', async () => (why = await holding(story, 'waiting-for-clean')).includes(mount), within)
  rmSync(join(story.machine.disk, 'etc/rc.local'))
  assert.match(why, / since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/)
  await clock.wait(watchedFor)
  assert.match(await holding(story), /waiting-for-clean/)
  assert.not.match(await holding(story), /silent/)
  assert.ok((await stage.cluster.node(story.machine.name)).spec?.taints?.some(ourTaint), 'it is quarantined')
  assert.ok(await isMounted(story))
  await story.machine.run(['sh', '-c', `kill $(cat /run/deaf.pid); until umount ${mount}; do sleep 0.1; done; rmdir ${mount} ${mount.replace('/globalmount', '')}`])
  const incident = await ended(story)
  tell(`a mount whose server is dead (held: ${why})`, story, incident)
  await comesBack(story, incident)
})

test('where the policy has its agent clean up, that lets go of it, and the node is back', async () => {
  await stage.cluster.kubectl('patch', 'holdfastpolicy', 'lab', '--type', 'merge', '--patch', JSON.stringify({ spec: { cleanUp: 'agent' } }))
  const story = await backWith()
  await until('it was mounted', async () => story.machine.power() === 'on' && await isMounted(story).catch(() => false), within)
  rmSync(join(story.machine.disk, 'etc/rc.local'))
  await until('it is let go of', async () => !await isMounted(story), within)
  const incident = await ended(story)
  tell('a mount whose server is dead, cleaned up by the agent', story, incident)
  await comesBack(story, incident)
})

test('the stage is left', async () => await stage.stop())

test.run()
