// Asked as a replica asks them: each as a process.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentCatalogue } from '../../coordinator/agent-catalogue.ts'
import { machineHost } from '../../coordinator/machine-host.ts'
import { silentLog } from '../../edge/log.ts'

const test = suite('agent catalogue')

test('a program is asked once, its parameters are known by what it prints; one that is silent or not there is unknown', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'catalogue-test-'))
  const write = (name: string, script: string) => {
    writeFileSync(join(folder, name), `#!/bin/sh\necho asked >> ${folder}/asked.${name}\n${script}`)
    chmodSync(join(folder, name), 0o755)
  }
  write('thing', 'read action; [ "$action" = action=metadata ] && echo \'<parameter name="plug" required="1"><content type="integer" /></parameter>\'')
  write('mute', 'exit 1')
  const host = machineHost({ log: silentLog, fenceAgents: [folder], address: '127.0.0.1', port: 0, kdumpPort: 0, bind: '127.0.0.1' } as unknown as Parameters<typeof machineHost>[0]) // nothing else of it is used
  const answers: string[] = []
  const all = Promise.withResolvers<void>()
  const catalogue = agentCatalogue({ log: silentLog, describe: (agent) => host.describe?.(agent) ?? Promise.resolve(undefined), learned() {
    if (answers.push('one') === 3) all.resolve()
  } })
  try {
    for (const agent of ['thing', 'thing', 'mute', 'nowhere']) assert.is(catalogue.of(agent), 'pending')
    await all.promise
    const thing = catalogue.of('thing')
    assert.equal(typeof thing === 'string' ? thing : [...thing.values()], [{ name: 'plug', kind: 'integer', required: true, obsoletes: undefined, options: [] }])
    assert.equal([catalogue.of('mute'), catalogue.of('nowhere'), answers.length], ['unknown', 'unknown', 3])
    assert.equal(readFileSync(join(folder, 'asked.thing'), 'utf8'), 'asked\n')
  } finally {
    await host.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('one that did not come to say is unknown for now, and is asked again with the next configuration that names it', async () => {
  const answers = [undefined, '<parameter name="plug" required="1"><content type="integer" /></parameter>']
  let learned = 0
  const catalogue = agentCatalogue({ log: silentLog, describe: async () => answers.shift(), learned: () => void (learned += 1) })
  const asked = async () => {
    const said = catalogue.of('thing')
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
    return typeof said === 'string' ? said : [...said.keys()]
  }
  assert.equal([await asked(), learned], ['pending', 1])
  assert.equal([await asked(), learned], ['unknown', 2], 'nobody waits for it a second time')
  assert.equal([await asked(), learned, answers.length], [['plug'], 2, 0])
})

test.run()
