import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ApiError } from '../../coordinator/api.ts'
import { paths } from '../../coordinator/kubernetes.ts'
import { rightTo, tellingRefusals } from '../../coordinator/rights.ts'
import { silentLog } from '../../edge/log.ts'

const test = suite('rights')

/** Reads that end so, and the rights that are told to be lacking. */
async function told(...reads: readonly (readonly [path: string, kind: ApiError['kind'] | 'ok'])[]): Promise<readonly string[]> {
  const lines: string[] = []
  let kind: ApiError['kind'] | 'ok' = 'ok'
  const api = tellingRefusals(
    { get: async () => (kind === 'ok' ? { ok: true, value: {} as never } : { ok: false, error: { kind, message: `${kind} it is` } }) }, // nobody looks at the value
    { ...silentLog, error: (facts) => void lines.push(JSON.stringify(facts)) },
  )
  for (const [path, ends] of reads) {
    kind = ends
    assert.is((await api.get(path)).ok, ends === 'ok')
  }
  return lines
}

const lease = (node: string) => paths.lease(node)

test('a read that is refused is told once, whatever its name, in the words of the API server', async () => {
  const lines = await told([lease('node-1'), 'forbidden'], [lease('node-2'), 'forbidden'], [lease('node-1'), 'forbidden'])
  assert.equal(lines, ['{"right":"get leases in kube-node-lease","kind":"forbidden","message":"forbidden it is"}'])
})

test('each kind of thing, and each namespace, is told apart', async () => {
  const lines = await told([paths.claim('a', 'x'), 'forbidden'], [paths.claim('b', 'x'), 'forbidden'], [paths.volume('x'), 'forbidden'], [paths.node('x'), 'forbidden'], [paths.podsOf('x'), 'forbidden'])
  assert.is(lines.length, 5)
})

test('a right that is granted and taken away again is told again', async () => {
  assert.is((await told([lease('node-1'), 'forbidden'], [lease('node-1'), 'ok'], [lease('node-2'), 'forbidden'])).length, 2)
})

test('what fails otherwise is no lack of a right, and nothing is told of it', async () => {
  assert.equal(await told([lease('node-1'), 'notFound'], [lease('node-1'), 'server'], [lease('node-1'), 'late'], [lease('node-1'), 'ok']), [])
})

test('a right is called by its verb, its kind and its namespace', () => {
  assert.equal([paths.podsOf('node-1', 'more'), paths.node('node-1'), paths.claim('work', 'data'), paths.volume('pv-1'), paths.attachments, '/version'].map(rightTo), [
    'list pods', 'get nodes', 'get persistentvolumeclaims in work', 'get persistentvolumes', 'list volumeattachments', 'list /version',
  ])
})

test.run()
