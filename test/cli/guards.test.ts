import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { denyingOf, guardNames } from '../../cli/guards.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { manifests } from '../../deploy/manifests.ts'
import { usualValues } from '../../deploy/values.ts'

const test = suite('guards')

const bindings = manifests(usualValues).filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding') as unknown as readonly (KubeObject & { spec: object })[] // as they are applied

test('each binding that is installed denies for its policy; one that only warns denies nothing', () => {
  assert.equal(bindings.map(denyingOf).toSorted(), [...guardNames].toSorted())
  const [first] = bindings
  assert.ok(first)
  assert.equal([['Warn', 'Audit'], []].map((validationActions) => denyingOf({ ...first, spec: { ...first?.spec, validationActions } } as KubeObject)), [undefined, undefined])
})

test.run()
