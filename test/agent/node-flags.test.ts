import { spawnSync } from 'node:child_process'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { nodeFlags } from '../../agent/node-flags.ts'
import { manifests } from '../../deploy/manifests.ts'
import { usualValues } from '../../deploy/values.ts'

const test = suite('node-flags')

test('the Node of the image takes each of them: one that it did not know would keep every agent from starting', () => {
  for (const flag of nodeFlags) assert.is(spawnSync(execPath, [flag, '--eval', 'process.exit(7)']).status, 7, flag)
  assert.is(spawnSync(execPath, ['--no-such-flag-of-any-v8', '--eval', 'process.exit(7)']).status, 9, 'one that it does not know')
})

test('the agent is started with them, before its program', () => {
  const [container] = Object(manifests(usualValues).find(({ kind }) => kind === 'DaemonSet'))['spec'].template.spec.containers
  assert.equal(container.command, ['/holdfast/node', ...nodeFlags, '/holdfast/agent.mjs'])
})

test.run()
