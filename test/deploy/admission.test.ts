import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { admissionManifests, operatorRole } from '../../deploy/admission.ts'
import { grants } from '../../deploy/rights.ts'
import { usualValues } from '../../deploy/values.ts'

const test = suite('admission')

const made = admissionManifests(usualValues)
const ofKind = (kind: string) => made.filter((manifest) => manifest.kind === kind)
const policies = ofKind('ValidatingAdmissionPolicy').map(({ metadata, spec }) => ({ name: metadata.name, ...Object(spec) }))

test('every policy is bound once, and denies', () => {
  const bound = ofKind('ValidatingAdmissionPolicyBinding').map(({ spec }) => spec)
  assert.equal(bound, policies.map(({ name }) => ({ policyName: name, validationActions: ['Deny'] })))
})

test('every policy fails closed, looks at a part of the writes only, and refuses with 403 in a sentence', () => {
  for (const { name, failurePolicy, matchConditions, validations } of policies) {
    assert.is(failurePolicy, 'Fail', name)
    assert.ok(matchConditions.length > 0, name)
    for (const { reason, message } of validations) {
      assert.is(reason, 'Forbidden', message)
      assert.ok(message.length > 40 && !message.endsWith('.') && !message.includes('\n'), message)
    }
  }
})

test('no policy looks at what kubelet says of its node, nor at a Lease', () => {
  const ofStatus = policies.find(({ name }) => name === 'holdfast-coordinator-node-status')
  assert.equal(ofStatus?.matchConditions.map((one: { expression: string }) => one.expression), ["request.userInfo.username == 'system:serviceaccount:holdfast-system:holdfast-coordinator'"])
  const resources = new Set(policies.flatMap(({ matchConstraints }) => matchConstraints.resourceRules.flatMap((rule: { resources: string[] }) => rule.resources)))
  assert.equal([...resources].toSorted(), ['configmaps', 'holdfastpolicies/status', 'nodefences', 'nodefences/status', 'noderecords', 'nodes', 'nodes/status', 'pods', 'pods/eviction', 'pods/status', 'volumeattachments'])
})

test('nothing is read that may not be there: an expression that fails would refuse', () => {
  for (const { name, matchConditions, variables, validations } of policies) {
    for (const { expression } of [...matchConditions, ...variables, ...validations]) {
      assert.not.match(expression, /object\.(spec|status)\b|metadata\.(labels|annotations|finalizers|ownerReferences)\b/i, `${name}: ${expression}`)
    }
  }
})

test('operators may all but mend, and the coordinator holds no permission of a person', () => {
  const [role] = ofKind('ClusterRole')
  assert.is(role?.metadata.name, operatorRole)
  assert.equal(Object(role)['rules'][0], { apiGroups: ['holdfast.dev'], resources: ['nodes'], verbs: ['taint', 'vouch', 'fence', 'drill', 'abort', 'configure'] })
  assert.equal(Object.keys(role?.metadata.labels ?? {}).filter((label) => label.includes('aggregate')), [])
  const held = grants(usualValues).flatMap(({ rights }) => rights).filter(({ group, resources }) => group === 'holdfast.dev' && resources.includes('nodes'))
  assert.equal(held, [])
})

const kinds = (stamps: boolean): string[] => admissionManifests({ ...usualValues, stamps }).map(({ kind }) => kind).filter((kind) => kind.startsWith('Mutating'))

test('who vouches is stamped where the API server can, and nothing else is changed by a policy', () => {
  assert.equal([kinds(true), kinds(false)], [['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'], []])
})

test('the policies know the coordinator by the namespace it is in', () => {
  const text = JSON.stringify(admissionManifests({ ...usualValues, namespace: 'hf' }))
  assert.match(text, /system:serviceaccount:hf:holdfast-coordinator/)
  assert.match(text, /"kubernetes.io\/metadata.name":"hf"/)
  assert.not.match(text, /holdfast-system/)
})

test.run()
