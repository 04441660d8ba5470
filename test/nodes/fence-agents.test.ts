// The second image on real nodes: the coordinator fences by a program of ClusterLabs, and the tool that our own `ipmi` calls is there.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fenceArchive, fenceImage } from '../../deploy/fence-image.ts'
import { names, usualValues } from '../../deploy/values.ts'
import { until } from './cluster.ts'
import { command } from './command.ts'
import { say } from './room.ts'
import { dist, recordsOf, startStage, type Stage } from './stage.ts'
import { begin, ended, movedAway, neverTwoWriters, tell, transcript } from './story.ts'

const test = suite('fence agents')
const { namespace } = usualValues
const template = 'fence-method-template-redfish'
const within = 180_000
let stage: Stage

const kubectl = (...words: readonly string[]): Promise<string> => stage.cluster.kubectl(...words)

/** It knows no pin of a certificate, and what a program does not know is refused. */
async function unpinned(node: string): Promise<void> {
  const map = `fence-config-${node}`
  const { data } = JSON.parse(await kubectl('--namespace', namespace, 'get', 'configmap', map, '--output', 'json')) as { data: Record<string, string> }
  const methods = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, text.split('\n').filter((line) => !line.startsWith('certificate_sha256=')).join('\n')]))
  const file = join(stage.cluster.folder, `${map}.json`)
  writeFileSync(file, JSON.stringify({ data: methods }))
  await kubectl('--namespace', namespace, 'patch', 'configmap', map, '--type', 'merge', '--patch-file', file)
}

test('the stage is set, and the coordinator has the second image', async () => {
  stage = await startStage(say, { images: [fenceArchive(dist)] })
  const file = join(stage.cluster.folder, 'holdfast-fence-agents.yaml')
  const [line = ''] = /^sed .* > /m.exec(readFileSync('docs/install.md', 'utf8')) ?? []
  await command('sh', ['-c', `${line.replace('dist/', dist)} ${file}`])
  // As whoever did not read so far: from then on the field is another manager's.
  await kubectl('--namespace', namespace, 'set', 'image', `deployment/${names.coordinator}`, 'coordinator=another:1')
  const apply = (...words: readonly string[]): Promise<string> => kubectl('apply', '--server-side', ...words, '--filename', file)
  assert.match(await apply().catch(String), /conflict with "kubectl-set"/)
  await apply('--force-conflicts')
  await apply()
  await kubectl('--namespace', namespace, 'rollout', 'status', `deployment/${names.coordinator}`, '--timeout=240s')
  assert.match(await kubectl('--namespace', namespace, 'get', 'deployment', names.coordinator, '--output', 'jsonpath={.spec.template.spec.containers[*].image}'), new RegExp(`^${fenceImage}$`))
  // Nobody listens there: that it knows so is the tool's own word, and without the tool it says that none is installed.
  const asked = ['action=status', 'ip=127.0.0.1', 'ipport=1', 'username=nobody', 'password=none'].join('\\n')
  const ipmi = ['sh', '-c', `printf '${asked}\\n' | /holdfast/node /holdfast/fence-agents/ipmi/ipmi.mjs`]
  assert.match(await kubectl('--namespace', namespace, 'exec', `deployment/${names.coordinator}`, '--', ...ipmi).catch(String), /the controller does not answer \(ipmitool: /)
})

test('a power cut: ordered off, moved, and switched on again by fence_redfish', async () => {
  const story = await begin(stage)
  const properties = ['agent_name=fence_redfish', 'username=secret:redfish/username', 'password=secret:redfish/password', 'systems_uri=/redfish/v1/Systems/1', 'ssl_insecure=1', 'timeout=30s', 'late=10s']
  const file = join(stage.cluster.folder, 'template.json')
  writeFileSync(file, JSON.stringify({ data: { 'template.properties': `${properties.join('\n')}\n` } }))
  await kubectl('--namespace', namespace, 'patch', 'configmap', template, '--type', 'merge', '--patch-file', file)
  for (const node of stage.cluster.machines.keys()) await unpinned(node)
  // It tells no machine's UUID, so that nothing proves the way it leads.
  await until('every path answers by it', async () => [...(await recordsOf(stage)).values()].every(({ paths }) => paths.length > 0 && paths.every(({ state, identity }) => state === 'verified' && identity === 'unproven')), within)
  await story.machine.powerOff()
  await movedAway(story)
  const incident = await ended(story)
  tell('power cut, by fence_redfish', story, incident)
  assert.equal([...new Set(incident.status.attempts.map(({ agent }) => agent))], ['fence_redfish'], transcript(incident))
  assert.equal([incident.status.proof?.kind, incident.status.outcome], ['off', 'Recovered'], transcript(incident))
  assert.is(story.machine.power(), 'on')
  neverTwoWriters(story)
})

test('the stage is left', async () => await stage.stop())

test.run()
