import { execFileSync } from 'node:child_process'
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseAllDocuments } from 'yaml'
import { machinePrograms } from '../../coordinator/programs.ts'
import { fenceImage, fenceTools } from '../../deploy/fence-image.ts'
import { settings } from '../../deploy/images.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { usualValues } from '../../deploy/values.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('fence image')

test('by the path of our images a fence program finds a tool that a Debian package has put into /usr/bin, as ipmitool is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-fence-image-'))
  const usual = process.env['PATH']
  mkdirSync(join(folder, 'agents'))
  // As fence-agents/ipmi/ipmi.ts and fence-agents/tool.ts call theirs: by name, with the path that they were given. `env` stands for it.
  const file = join(folder, 'agents', 'calls-a-tool')
  writeFileSync(file, `#!${process.execPath}\nconst { error, status } = require('child_process').spawnSync('env', [], { env: { PATH: process.env.PATH } }); console.log(error?.code); process.exit(status ?? 1)\n`)
  chmodSync(file, 0o755)
  process.env['PATH'] = settings.path
  const programs = machinePrograms({ folders: [join(folder, 'agents')], clock: machineClock })
  try {
    const { exitCode, stdout } = await programs.run({ agent: 'calls-a-tool', stdin: '', environment: {}, within: 20_000 })
    assert.equal([exitCode, stdout.trim()], [0, 'undefined'])
  } finally {
    process.env['PATH'] = usual
    await programs.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the Dockerfile gives its image the same path', () => {
  assert.equal(/^ENV PATH=(.*)$/m.exec(readFileSync('deploy/Dockerfile', 'utf8'))?.[1], settings.path)
})

test('a tool that a program of ours calls is one that this image is held to have, or the docs say who brings it', () => {
  const called = globSync('fence-agents/*/*.ts').flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\b(?:spawn|runTool)\('([^']+)'/g)].map(([, tool = '']) => tool)).toSorted()
  assert.equal(called, ['ipmitool', 'virsh'])
  const docs = readFileSync('docs/fence-agents.md', 'utf8')
  for (const tool of called) assert.ok(fenceTools.includes(tool) || docs.includes(`\`${tool}\`, which must be in the coordinator's image`), tool)
})

const documents = (text: string): unknown[] => parseAllDocuments(text).map((document) => document.toJS())

test('by the line of docs/install.md the coordinator has this image, and nothing else is changed', () => {
  const [, script = ''] = /^sed '(.*)' dist\/holdfast\.yaml > /m.exec(readFileSync('docs/install.md', 'utf8')) ?? []
  const changed = documents(execFileSync('sed', [script], { input: yamlOf(manifests(usualValues)), encoding: 'utf8' }))
  assert.equal(changed, documents(yamlOf(manifests(usualValues))).map((one) => withImage(one)))
})

// As deploy/coordinator.ts writes it.
function withImage(one: unknown): unknown {
  const { kind, spec } = Object(one)
  if (kind === 'Deployment') spec.template.spec.containers[0].image = fenceImage
  return one
}

test.run()
